// Sorting rows by slot: a count of each slot, then places in row order.
#include "methods/pqtree/bin_lists.h"

namespace pgwarp
{

BinLists::BinLists(const TreeShape& tree, std::span<const std::uint8_t> codes, std::size_t stride, ThreadPool& pool)
    : slots_(BinSlots::of(tree.bins(), codes.size() / stride)),
      begin_(slots_.slots + 1, 0),
      row_at_(codes.size() / stride)
{
    std::vector<std::uint64_t> slot_of_row(row_at_.size());
    pool.parallel_for(row_at_.size(), 65536, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            const std::uint8_t* code = codes.data() + row * stride;
            for (std::size_t part = 0; part < tree.parts; ++part) {
                if (leaf_of(code, part) >= tree.leaves()) throw BadRequest("a row is in a leaf that does not exist");
            }
            slot_of_row[row] = slots_.slot(bin_of_code(code, tree));
        }
    });
    filled_.assign(slots_.slots / 64 + 1, 0);
    for (const std::uint64_t slot : slot_of_row) {
        ++begin_[slot + 1];
        filled_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t row = 0; row < row_at_.size(); ++row)
        row_at_[next[slot_of_row[row]]++] = static_cast<std::uint32_t>(row);
}

}  // namespace pgwarp
