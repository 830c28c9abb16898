// Applying and computing changes of edges.
#include "methods/graph/edge_changes.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

void check_change(const EdgeChange& change, std::size_t rows, std::size_t degree)
{
    if (change.row >= rows || change.place >= degree) throw BadRequest("an edge is changed that does not exist");
    if (change.neighbour != no_neighbour && change.neighbour >= rows)
        throw BadRequest("a neighbour is no row of its index");
}

}  // namespace

void apply_changes(std::span<std::uint32_t> neighbours, std::size_t degree, std::span<const EdgeChange> changes)
{
    const std::size_t rows = degree == 0 ? 0 : neighbours.size() / degree;
    for (const EdgeChange& change : changes) {
        check_change(change, rows, degree);
        const std::span<std::uint32_t> places = neighbours.subspan(change.row * degree, degree);
        if (change.neighbour == no_neighbour) {
            std::fill(places.begin() + change.place, places.end(), no_neighbour);
        } else {
            places[change.place] = change.neighbour;
        }
    }
}

std::vector<EdgeChange> last_changes(std::size_t rows, std::size_t degree, std::span<const EdgeChange> changes)
{
    std::vector<EdgeChange> last;
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
        check_change(*change, rows, degree);
        last.push_back(*change);
        if (change->neighbour != no_neighbour) continue;
        for (std::uint32_t place = change->place + 1; place < degree; ++place)
            last.push_back({change->row, place, no_neighbour});
    }
    const auto place_of = [degree](const EdgeChange& change) { return change.row * degree + change.place; };
    std::stable_sort(last.begin(), last.end(),
                     [&](const EdgeChange& a, const EdgeChange& b) { return place_of(a) < place_of(b); });
    const auto same = [&](const EdgeChange& a, const EdgeChange& b) { return place_of(a) == place_of(b); };
    last.erase(std::unique(last.begin(), last.end(), same), last.end());
    return last;
}

void append_changes(std::span<const std::uint32_t> before, const GraphEdges& after, std::vector<EdgeChange>& changes)
{
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] == after.neighbours[i]) continue;
        const std::size_t row = i / after.degree;
        changes.push_back(
            {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(i % after.degree), after.neighbours[i]});
        // Only unused places follow an unused place.
        if (after.neighbours[i] == no_neighbour) i = (row + 1) * after.degree - 1;
    }
}

}  // namespace pgwarp
