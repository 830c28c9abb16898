// Sorting rows by slot: a count of each slot, then places in row order; the few rows of a hashed slot are sorted by
// bin.
#include "methods/pqtree/bin_lists.h"

#include <algorithm>

namespace pgwarp
{

BinLists::BinLists(const TreeShape& tree, std::span<const std::uint8_t> codes, std::size_t stride, ThreadPool& pool)
    : slots_(BinSlots::of(tree.bins(), codes.size() / stride)),
      begin_(slots_.slots + 1, 0),
      row_at_(codes.size() / stride)
{
    std::vector<std::uint64_t> bin_of_row(row_at_.size());
    pool.parallel_for(row_at_.size(), 65536, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            const std::uint8_t* code = codes.data() + row * stride;
            std::uint16_t leaves[most_tree_parts];
            for (std::size_t part = 0; part < tree.parts; ++part) {
                leaves[part] = leaf_of(code, part);
                if (leaves[part] >= tree.leaves()) throw BadRequest("a row is in a leaf that does not exist");
            }
            bin_of_row[row] = bin_of(leaves, tree.parts, tree.leaves());
        }
    });
    filled_.assign(slots_.slots / 64 + 1, 0);
    for (const std::uint64_t bin : bin_of_row) {
        const std::uint64_t slot = slots_.slot(bin);
        ++begin_[slot + 1];
        filled_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t row = 0; row < row_at_.size(); ++row)
        row_at_[next[slots_.slot(bin_of_row[row])]++] = static_cast<std::uint32_t>(row);
    if (slots_.hashed) order_slots(bin_of_row, pool);
}

void BinLists::order_slots(std::span<const std::uint64_t> bin_of_row, ThreadPool& pool)
{
    bin_at_.resize(row_at_.size());
    pool.parallel_for(slots_.slots, 65536, [&](std::size_t first, std::size_t last) {
        const auto rows = std::span(row_at_).subspan(begin_[first], begin_[last] - begin_[first]);
        for (std::size_t slot = first; slot < last; ++slot) {
            std::sort(row_at_.begin() + begin_[slot], row_at_.begin() + begin_[slot + 1],
                      [&](std::uint32_t a, std::uint32_t b) {
                          return bin_of_row[a] != bin_of_row[b] ? bin_of_row[a] < bin_of_row[b] : a < b;
                      });
        }
        for (std::size_t i = 0; i < rows.size(); ++i) bin_at_[begin_[first] + i] = bin_of_row[rows[i]];
    });
}

PositionRange BinLists::rows_of_hashed(std::uint64_t bin) const
{
    const std::uint64_t slot = slots_.slot(bin);
    const auto rows = std::equal_range(bin_at_.begin() + begin_[slot], bin_at_.begin() + begin_[slot + 1], bin);
    return {static_cast<std::uint32_t>(rows.first - bin_at_.begin()),
            static_cast<std::uint32_t>(rows.second - bin_at_.begin())};
}

}  // namespace pgwarp
