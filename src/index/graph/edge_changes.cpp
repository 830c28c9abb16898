#include "index/graph/edge_changes.h"

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
        neighbours[change.row * degree + change.place] = change.neighbour;
    }
}

std::vector<EdgeChange> last_changes(std::size_t rows, std::size_t degree, std::span<const EdgeChange> changes)
{
    std::vector<EdgeChange> last(changes.rbegin(), changes.rend());
    for (const EdgeChange& change : last) check_change(change, rows, degree);
    const auto place_of = [degree](const EdgeChange& change) { return change.row * degree + change.place; };
    std::stable_sort(last.begin(), last.end(),
                     [&](const EdgeChange& a, const EdgeChange& b) { return place_of(a) < place_of(b); });
    const auto same = [&](const EdgeChange& a, const EdgeChange& b) { return place_of(a) == place_of(b); };
    last.erase(std::unique(last.begin(), last.end(), same), last.end());
    return last;
}

}  // namespace pgwarp
