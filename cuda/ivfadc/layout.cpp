#include "ivfadc/layout.h"

#include <algorithm>
#include <functional>

#include "methods/method.h"

namespace pgwarp::cuda::ivfadc
{

ListLayout ListLayout::arrange(std::span<const std::uint32_t> list_of_row, std::size_t lists)
{
    ListLayout layout;
    layout.length.assign(lists, 0);
    for (const std::uint32_t list : list_of_row) {
        if (list >= lists) throw BadRequest("a row is in a list that does not exist");
        ++layout.length[list];
    }
    layout.begin.resize(lists);
    std::vector<std::uint64_t> sizes(lists);
    std::uint64_t positions = 0;
    for (std::size_t list = 0; list < lists; ++list) {
        layout.begin[list] = static_cast<std::uint32_t>(positions);
        sizes[list] = whole_groups(layout.length[list]);
        positions += sizes[list];
    }
    if (positions >= no_row) throw BadRequest("too many rows for one device");
    layout.row_at.assign(positions, no_row);
    layout.position_of.resize(list_of_row.size());
    std::vector<std::uint32_t> next = layout.begin;
    for (std::size_t row = 0; row < list_of_row.size(); ++row) {
        const std::uint32_t position = next[list_of_row[row]]++;
        layout.position_of[row] = position;
        layout.row_at[position] = static_cast<std::uint32_t>(row);
    }
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    layout.most_slots.resize(lists + 1, 0);
    for (std::size_t i = 0; i < lists; ++i) layout.most_slots[i + 1] = layout.most_slots[i] + sizes[i];
    return layout;
}

// A list of r slots has s = ceil(r / item_rows) <= r / item_rows + 1 stretches, so p different lists have at most
// most_slots[p] / item_rows + p, and no more than p times those of the longest list. A list that n > 0 queries probe in
// a phase has ceil(n / item_queries) * s <= (n / item_queries + 1) * s items. Over all lists and both phases, the sum
// of n * s is that of the stretches of each query's lists: at most `pairs`. The sum of s over the probed lists of both
// phases is at most `pairs` too, as n > 0, and at most twice the stretches of all lists. Each bound of stretches is a
// whole number, and so is the number of items, so quotients may be rounded down.
std::uint64_t most_items(const ListLayout& layout, std::uint64_t count, std::uint64_t probes,
                         std::uint64_t item_queries, std::uint64_t item_rows)
{
    const std::uint64_t lists = layout.most_slots.size() - 1;
    const std::uint64_t longest = (layout.most_slots[std::min<std::uint64_t>(1, lists)] + item_rows - 1) / item_rows;
    const auto stretches = [&](std::uint64_t p) { return std::min(layout.most_slots[p] / item_rows + p, p * longest); };
    const std::uint64_t pairs = count * stretches(probes);
    return pairs / item_queries + std::min(pairs, 2 * stretches(lists));
}

}  // namespace pgwarp::cuda::ivfadc
