// Makes every row reachable from the first seed. The tree of a breadth-first search keeps its edges; a row that the
// search does not reach takes a free place, or one of an edge outside the tree.
#include <algorithm>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "numeric/kmeans_rules.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t order_seed = 0x73656564;
constexpr std::uint32_t unreached = unreached_row;
constexpr std::uint32_t root = root_row;

class Connector
{
public:
    explicit Connector(GraphEdges& edges) : edges_(edges), parent_(edges.count(), unreached) {}
    // From the result of a breadth-first search.
    Connector(GraphEdges& edges, std::vector<std::uint32_t> parents)
        : edges_(edges), parent_(std::move(parents)), reached_(parent_.size())
    {
        reached_ -= static_cast<std::size_t>(std::count(parent_.begin(), parent_.end(), unreached));
    }

    void reach_from(std::uint32_t row, std::uint32_t parent)
    {
        parent_[row] = parent;
        queue_.assign(1, row);
        for (std::size_t i = 0; i < queue_.size(); ++i) {
            for (const std::uint32_t to : edges_.of(queue_[i])) {
                if (to == no_neighbour) break;
                if (parent_[to] != unreached) continue;
                parent_[to] = queue_[i];
                queue_.push_back(to);
            }
        }
        reached_ += queue_.size();
    }
    bool reached(std::uint32_t row) const { return parent_[row] != unreached; }
    std::size_t count() const { return reached_; }

    // Links an unreached row from a reached row with a place to spare, near it if there is one.
    void link(std::uint32_t row)
    {
        const std::uint32_t from = find_spare(row);
        *spare_place(from) = row;
        reach_from(row, from);
    }

private:
    // Returns an unused place of the row, otherwise its last place outside the tree; the end if there is none.
    std::span<std::uint32_t>::iterator spare_place(std::uint32_t row)
    {
        const std::span<std::uint32_t> places = edges_.of(row);
        const auto empty = std::find(places.begin(), places.end(), no_neighbour);
        if (empty != places.end()) return empty;
        for (auto place = places.end(); place != places.begin();) {
            --place;
            if (parent_[*place] != row) return place;
        }
        return places.end();
    }
    bool has_spare(std::uint32_t row) { return reached(row) && spare_place(row) != edges_.of(row).end(); }

    std::uint32_t find_spare(std::uint32_t row)
    {
        // Rows that this one or its neighbours lead to are near.
        for (const std::uint32_t near : edges_.of(row)) {
            if (near == no_neighbour) break;
            if (has_spare(near)) return near;
        }
        for (const std::uint32_t near : edges_.of(row)) {
            if (near == no_neighbour) break;
            for (const std::uint32_t next : edges_.of(near)) {
                if (next == no_neighbour) break;
                if (has_spare(next)) return next;
            }
        }
        // A tree has fewer edges than its rows have places, so some row has one to spare. Rows are tried in turn.
        while (!has_spare(turn_)) turn_ = static_cast<std::uint32_t>((turn_ + 1) % edges_.count());
        return turn_;
    }

    GraphEdges& edges_;
    std::vector<std::uint32_t> parent_;  // in the tree
    std::vector<std::uint32_t> queue_;
    std::size_t reached_ = 0;
    std::uint32_t turn_ = 0;
};

}  // namespace

void add_seeds(const GraphEdges& edges, std::span<const std::uint32_t> rows, std::size_t most,
               std::vector<std::uint32_t>& seeds, const ReachRows& reach)
{
    std::vector<bool> seen(edges.count(), false);
    const std::vector<std::uint32_t> parents = reach ? reach(edges, seeds) : std::vector<std::uint32_t>();
    for (std::size_t row = 0; row < parents.size(); ++row) seen[row] = parents[row] != unreached;
    std::vector<std::uint32_t> queue;
    const auto reach_from = [&](std::uint32_t row) {
        seen[row] = true;
        queue.assign(1, row);
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const std::uint32_t to : edges.of(queue[i])) {
                if (to == no_neighbour || seen[to]) continue;
                seen[to] = true;
                queue.push_back(to);
            }
        }
    };
    for (const std::uint32_t seed : seeds)
        if (!seen[seed]) reach_from(seed);
    const std::size_t before = seeds.size();
    for (const std::uint32_t row : rows) {
        if (seen[row] || seeds.size() >= most) continue;
        seeds.push_back(row);
        reach_from(row);
    }
    if (seeds.size() == before) return;
    std::vector<std::uint32_t> drawn;
    for (const std::uint32_t place : draw_rows(seeds.size(), seeds.size(), order_seed)) drawn.push_back(seeds[place]);
    seeds = std::move(drawn);
}

void connect_rows(GraphEdges& edges, std::span<const std::uint32_t> seeds, RowBitmap left_out,
                  const BuildProgress& progress, const ReachRows& reach)
{
    progress.report("connecting rows", 0, edges.count());
    std::vector<std::uint32_t> parents;
    if (reach) parents = reach(edges, seeds.first(1));
    const bool searched = !parents.empty();
    Connector connector = searched ? Connector(edges, std::move(parents)) : Connector(edges);
    if (!searched) connector.reach_from(seeds[0], root);
    for (const std::uint32_t seed : seeds) {
        if (!connector.reached(seed)) connector.link(seed);
    }
    for (std::size_t row = 0; row < edges.count() && connector.count() < edges.count(); ++row) {
        if (row % 4096 == 0) {
            progress.advance("connecting rows", row, edges.count());
        }
        if (!connector.reached(static_cast<std::uint32_t>(row)) && !bit_is_set(left_out, row))
            connector.link(static_cast<std::uint32_t>(row));
    }
}

}  // namespace pgwarp
