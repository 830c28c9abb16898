// Pruning by detours, reverse edges, and the edges of one new row.
#include "methods/graph/edges.h"

#include <algorithm>
#include <vector>

#include "methods/graph/build_loop.h"
#include "methods/graph/graph.h"
#include "methods/rows/place_table.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t edge_piece_rows = 512;

std::span<const std::uint32_t> without_unused(std::span<const std::uint32_t> rows)
{
    std::size_t used = rows.size();
    while (used > 0 && rows[used - 1] == no_neighbour) --used;
    return rows.first(used);
}

// Orders the rows near a row by their number of detours: ways over a nearer row, which ranks them better.
class DetourOrder
{
public:
    explicit DetourOrder(std::size_t width) : detours_(width) {}

    template <class NeighboursOf>
    void sort(std::span<const std::uint32_t> near, NeighboursOf neighbours_of, std::vector<std::uint32_t>& out)
    {
        places_.assign(near);
        std::fill(detours_.begin(), detours_.end(), 0U);
        for (std::size_t i = 0; i < near.size(); ++i) {
            if (i + 2 < near.size()) prefetch(neighbours_of(near[i + 2]));
            places_.for_those_there(neighbours_of(near[i]), [&](std::size_t rank, std::uint32_t place) {
                if (place > std::max(i, rank)) ++detours_[place];
            });
        }
        order_.resize(near.size());
        for (std::size_t i = 0; i < near.size(); ++i) order_[i] = {detours_[i], static_cast<std::uint32_t>(i)};
        std::sort(order_.begin(), order_.end());
        out.clear();
        for (const auto& [detours, place] : order_) out.push_back(near[place]);
    }

private:
    static void prefetch(std::span<const std::uint32_t> rows)
    {
        constexpr std::size_t line = 64 / sizeof(std::uint32_t);
        for (std::size_t i = 0; i < rows.size(); i += line) __builtin_prefetch(rows.data() + i);
    }

    PlaceTable places_;
    std::vector<std::uint32_t> detours_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order_;
};

// Returns [rows][degree]: of the nearest rows those with the fewest detours.
GraphEdges forward_edges(const NearestRows& nearest, std::size_t degree, std::span<const std::uint32_t> rows,
                         const BuildProgress& progress, ThreadPool& pool)
{
    const std::size_t count = nearest.width == 0 ? 0 : nearest.rows.size() / nearest.width;
    GraphEdges edges{degree, {}};
    edges.neighbours.resize(count * degree);
    std::fill(edges.neighbours.begin(), edges.neighbours.end(), no_neighbour);
    for_rows(rows.size(), 8 * edge_piece_rows, edge_piece_rows, "pruning edges", progress, pool,
             [&](std::size_t begin, std::size_t end) {
                 DetourOrder order(nearest.width);
                 std::vector<std::uint32_t> ordered;
                 for (std::size_t i = begin; i < end; ++i) {
                     const std::uint32_t row = rows[i];
                     order.sort(
                         without_unused({nearest.of(row), nearest.width}),
                         [&](std::uint32_t other) { return std::span(nearest.of(other), nearest.width); }, ordered);
                     const std::size_t kept = std::min(degree, ordered.size());
                     std::copy_n(ordered.begin(), kept, edges.of(row).begin());
                 }
             });
    return edges;
}

// Returns [rows][degree]: the rows with an edge to each row, first those that rank it first.
GraphEdges reverse_edges(const GraphEdges& forward, const BuildProgress& progress)
{
    GraphEdges reverse{forward.degree, {}};
    reverse.neighbours.resize(forward.neighbours.size());
    std::fill(reverse.neighbours.begin(), reverse.neighbours.end(), no_neighbour);
    std::vector<std::uint16_t> used(forward.count(), 0);
    for (std::size_t rank = 0; rank < forward.degree; ++rank) {
        progress.advance("adding reverse edges", rank, forward.degree);
        for (std::size_t row = 0; row < forward.count(); ++row) {
            const std::uint32_t to = forward.of(row)[rank];
            if (to == no_neighbour || used[to] == forward.degree) continue;
            reverse.of(to)[used[to]++] = static_cast<std::uint32_t>(row);
        }
    }
    return reverse;
}

// Half of the places take the row's own edges, then come its reverse edges, then more of its own.
void join_edges(std::span<const std::uint32_t> forward, std::span<const std::uint32_t> reverse,
                std::span<std::uint32_t> out)
{
    std::size_t used = 0;
    const auto add = [&](std::span<const std::uint32_t> rows) {
        for (const std::uint32_t row : rows) {
            if (row == no_neighbour || used == out.size()) return;
            if (std::find(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(used), row) ==
                out.begin() + static_cast<std::ptrdiff_t>(used))
                out[used++] = row;
        }
    };
    add(forward.first((forward.size() + 1) / 2));
    add(reverse);
    add(forward);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(used), out.end(), no_neighbour);
}

}  // namespace

GraphEdges draw_edges(const NearestRows& nearest, std::size_t degree, std::span<const std::uint32_t> rows,
                      const BuildProgress& progress, ThreadPool& pool)
{
    const GraphEdges forward = forward_edges(nearest, degree, rows, progress, pool);
    const GraphEdges reverse = reverse_edges(forward, progress);
    GraphEdges edges{degree, {}};
    edges.neighbours.resize(forward.neighbours.size());
    pool.parallel_for(edges.count(), edge_piece_rows, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) join_edges(forward.of(row), reverse.of(row), edges.of(row));
    });
    return edges;
}

std::vector<std::uint32_t> choose_edges(const GraphEdges& edges, std::span<const std::uint32_t> near)
{
    const auto neighbours_of = [&](std::uint32_t other) { return edges.of(other); };
    std::vector<std::uint32_t> ordered;
    DetourOrder(near.size()).sort(near, neighbours_of, ordered);
    ordered.resize(std::min(ordered.size(), edges.degree));
    return ordered;
}

void insert_row(GraphEdges& edges, std::uint32_t row, std::span<const std::uint32_t> near,
                const std::function<std::size_t(std::uint32_t from)>& give_up)
{
    const std::vector<std::uint32_t> chosen = choose_edges(edges, near);
    const std::span<std::uint32_t> own = edges.of(row);
    const auto rest = std::copy(chosen.begin(), chosen.end(), own.begin());
    // Rows that were inserted before may have taken places behind those of few chosen ones.
    const auto is_chosen = [&](std::uint32_t other) {
        return std::find(chosen.begin(), chosen.end(), other) != chosen.end();
    };
    std::fill(std::remove_if(rest, own.end(), is_chosen), own.end(), no_neighbour);
    for (const std::uint32_t other : chosen) {
        const std::span<std::uint32_t> back = edges.of(other);
        if (std::find(back.begin(), back.end(), row) != back.end()) continue;
        std::size_t place = without_unused(back).size();
        if (place == back.size()) place = give_up ? give_up(other) : place - 1;
        if (place < back.size()) back[place] = row;
    }
}

}  // namespace pgwarp
