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

}  // namespace pgwarp::cuda::ivfadc
