// Repair of edges to dead rows, in four steps: seeds, new edges of all rows, clearing dead rows, linking thin rows.
#include "methods/graph/repair.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "methods/graph/build_loop.h"
#include "methods/graph/graph.h"
#include "methods/rows/place_table.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t repair_piece_rows = 256;
constexpr std::size_t step_rows = 16384;
constexpr std::size_t most_passed = 256;  // dead rows that are passed through, for one row
constexpr std::size_t searched_together = 512;
constexpr std::size_t search_width = 2;  // rows that a search keeps, times those that edges are chosen from

// Finds the live rows behind the dead neighbours of a row, until there are enough.
class Surroundings
{
public:
    Surroundings(const GraphEdges& edges, const Repair& repair) : edges_(edges), repair_(repair) {}

    // Returns the row's live neighbours and the live rows found, nearest first, at most build_degree, without the row
    // itself.
    std::vector<std::uint32_t> nearest(std::uint32_t row)
    {
        seen_.clear();
        live_.clear();
        passed_.clear();
        seen_.add(row);
        look_at(edges_.of(row));
        // Dead rows of equal distance in edges are passed together, until there are enough live ones.
        for (std::size_t begin = 0; begin < passed_.size();) {
            const std::size_t end = passed_.size();
            for (std::size_t i = begin; i < end; ++i) look_at(edges_.of(passed_[i]));
            begin = end;
            if (live_.size() >= repair_.build_degree) break;
        }
        return nearest_of(repair_.scores, row, live_, repair_.build_degree);
    }

private:
    void look_at(std::span<const std::uint32_t> rows)
    {
        for (const std::uint32_t row : rows) {
            if (row == no_neighbour) break;
            if (seen_.place_of(row) != PlaceTable::none) continue;
            const bool dead = bit_is_set(repair_.dead, row);
            if (dead && passed_.size() == most_passed) continue;
            seen_.add(row);
            (dead ? passed_ : live_).push_back(row);
        }
    }

    const GraphEdges& edges_;
    const Repair& repair_;
    PlaceTable seen_;
    std::vector<std::uint32_t> live_;
    std::vector<std::uint32_t> passed_;  // dead ones, nearest in edges first
};

struct NewEdges {
    std::uint32_t row;
    std::vector<std::uint32_t> edges;
};

bool leads_to_dead(std::span<const std::uint32_t> edges, RowBitmap dead)
{
    for (const std::uint32_t to : edges) {
        if (to == no_neighbour) return false;
        if (bit_is_set(dead, to)) return true;
    }
    return false;
}

// Returns the new places of a row: live neighbours keep theirs, chosen rows take those of dead ones, unused places come
// last.
std::vector<std::uint32_t> replace_dead(std::span<const std::uint32_t> edges, RowBitmap dead,
                                        std::span<const std::uint32_t> chosen)
{
    std::vector<std::uint32_t> places(edges.begin(), edges.end());
    std::vector<std::uint32_t> added;
    for (const std::uint32_t row : chosen)
        if (std::find(edges.begin(), edges.end(), row) == edges.end()) added.push_back(row);
    auto next = added.begin();
    for (std::uint32_t& place : places) {
        const bool vacant = place == no_neighbour || bit_is_set(dead, place);
        if (vacant) place = next != added.end() ? *next++ : no_neighbour;
    }
    // A place left vacant takes the last edge, so that few places change.
    std::size_t used = places.size();
    for (std::size_t i = 0; i < used; ++i) {
        while (used > 0 && places[used - 1] == no_neighbour) --used;
        if (i < used && places[i] == no_neighbour) std::swap(places[i], places[used - 1]);
    }
    return places;
}

std::size_t count_used(std::span<const std::uint32_t> edges)
{
    return static_cast<std::size_t>(std::find(edges.begin(), edges.end(), no_neighbour) - edges.begin());
}

class Repairer
{
public:
    Repairer(GraphEdges& edges, std::vector<std::uint32_t>& seeds, const Repair& repair, const BuildProgress& progress,
             ThreadPool& pool)
        : edges_(edges), seeds_(seeds), repair_(repair), progress_(progress), pool_(pool)
    {
    }

    std::size_t run()
    {
        replace_seeds();
        find_edges();
        for (const NewEdges& made : made_) {
            const std::size_t before = count_used(edges_.of(made.row));
            std::copy(made.edges.begin(), made.edges.end(), edges_.of(made.row).begin());
            const std::size_t now = count_used(made.edges);
            if (now < before && now < edges_.degree / 2) thin_.push_back(made.row);
        }
        const std::size_t unlinked = clear_dead();
        link_thin();
        return unlinked;
    }

private:
    void replace_seeds()
    {
        std::unordered_set<std::uint32_t> taken(seeds_.begin(), seeds_.end());
        std::size_t alive = 0;
        for (std::size_t row = 0; row < edges_.count(); ++row) alive += bit_is_set(repair_.dead, row) ? 0 : 1;
        std::size_t left = seeds_.size();
        Surroundings surroundings(edges_, repair_);
        std::vector<std::uint32_t> kept;
        for (const std::uint32_t seed : seeds_) {
            if (!bit_is_set(repair_.dead, seed)) {
                kept.push_back(seed);
                continue;
            }
            const std::vector<std::uint32_t> near = surroundings.nearest(seed);
            const auto is_taken = [&](std::uint32_t row) { return taken.contains(row); };
            const bool needed = left <= seed_count(alive) || std::none_of(near.begin(), near.end(), is_taken);
            const auto free = needed ? std::find_if_not(near.begin(), near.end(), is_taken) : near.end();
            if (free == near.end()) {
                --left;
                continue;
            }
            taken.insert(*free);
            kept.push_back(*free);
        }
        for (std::uint32_t row = 0; kept.empty(); ++row)
            if (!bit_is_set(repair_.dead, row)) kept.push_back(row);
        seeds_ = std::move(kept);
    }

    // Reads the edges before the repair alone, so that the order of rows does not matter.
    void find_edges()
    {
        std::mutex mutex;
        const GraphEdges& edges = edges_;
        for_rows(edges.count(), step_rows, repair_piece_rows, "repairing edges", progress_, pool_,
                 [&](std::size_t begin, std::size_t end) {
                     std::vector<NewEdges> made;
                     Surroundings surroundings(edges, repair_);
                     for (std::size_t i = begin; i < end; ++i) {
                         const auto row = static_cast<std::uint32_t>(i);
                         if (bit_is_set(repair_.dead, i) || !leads_to_dead(edges.of(i), repair_.dead)) continue;
                         const std::vector<std::uint32_t> chosen = choose_edges(edges, surroundings.nearest(row));
                         made.push_back({row, replace_dead(edges.of(i), repair_.dead, chosen)});
                     }
                     const std::lock_guard lock(mutex);
                     for (NewEdges& one : made) made_.push_back(std::move(one));
                 });
        std::sort(made_.begin(), made_.end(), [](const NewEdges& a, const NewEdges& b) { return a.row < b.row; });
    }

    std::size_t clear_dead()
    {
        std::size_t unlinked = 0;
        for (std::size_t row = 0; row < edges_.count(); ++row) {
            if (!bit_is_set(repair_.dead, row) || edges_.of(row)[0] == no_neighbour) continue;
            std::fill(edges_.of(row).begin(), edges_.of(row).end(), no_neighbour);
            ++unlinked;
        }
        return unlinked;
    }

    void link_thin()
    {
        std::vector<std::vector<std::uint32_t>> near(std::min(searched_together, thin_.size()));
        for (std::size_t first = 0; first < thin_.size(); first += near.size()) {
            const std::size_t count = std::min(near.size(), thin_.size() - first);
            progress_.advance("linking rows", first, thin_.size());
            pool_.parallel_for(count, 4, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) near[i] = near_thin(thin_[first + i]);
            });
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint32_t row = thin_[first + i];
                std::fill(edges_.of(row).begin(), edges_.of(row).end(), no_neighbour);
                link_row(edges_, repair_.scores, row, near[i]);
            }
        }
    }

    // Returns the rows that a search finds and the neighbours of the row, nearest first.
    std::vector<std::uint32_t> near_thin(std::uint32_t row) const
    {
        std::vector<std::uint32_t> found = find_near(repair_.scores, edges_, seeds_, row, row, repair_.build_degree,
                                                     search_width * repair_.build_degree, progress_.cancel);
        const std::span<const std::uint32_t> own = std::as_const(edges_).of(row);
        found.insert(found.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count_used(own)));
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        std::erase(found, row);
        return nearest_of(repair_.scores, row, found, repair_.build_degree);
    }

    GraphEdges& edges_;
    std::vector<std::uint32_t>& seeds_;
    const Repair& repair_;
    const BuildProgress& progress_;
    ThreadPool& pool_;
    std::vector<NewEdges> made_;
    std::vector<std::uint32_t> thin_;
};

}  // namespace

std::size_t unlink_dead(GraphEdges& edges, std::vector<std::uint32_t>& seeds, const Repair& repair,
                        const BuildProgress& progress, ThreadPool& pool)
{
    return Repairer(edges, seeds, repair, progress, pool).run();
}

}  // namespace pgwarp
