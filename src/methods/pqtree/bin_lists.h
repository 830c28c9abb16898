// The rows of each slot, in the order of BinSlots (tree.h): the lists of a mirror of the CPU (CSR).
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "methods/method.h"
#include "methods/pqtree/build_arrays.h"

namespace pgwarp
{

// Positions [begin, end).
struct PositionRange {
    std::uint32_t begin;
    std::uint32_t end;
};

class BinLists
{
public:
    // codes [rows][stride]. Throws BadRequest for a leaf that does not exist.
    BinLists(const TreeShape& tree, std::span<const std::uint8_t> codes, std::size_t stride, ThreadPool& pool);

    const BinSlots& slots() const { return slots_; }
    std::uint32_t begin(std::uint64_t slot) const { return begin_[slot]; }
    std::uint32_t end(std::uint64_t slot) const { return begin_[slot + 1]; }
    bool holds_rows(std::uint64_t slot) const { return (filled_[slot / 64] >> (slot % 64) & 1) != 0; }
    // The rows of a bin, without those of other bins in its slot.
    PositionRange rows_of(std::uint64_t bin) const
    {
        return slots_.hashed ? rows_of_hashed(bin) : PositionRange{begin_[bin], begin_[bin + 1]};
    }
    std::uint32_t row_at(std::size_t position) const { return row_at_[position]; }
    std::size_t rows() const { return row_at_.size(); }
    std::uint64_t memory_bytes() const
    {
        return (begin_.size() + row_at_.size()) * sizeof(std::uint32_t) +
               (filled_.size() + bin_at_.size()) * sizeof(std::uint64_t);
    }

private:
    PositionRange rows_of_hashed(std::uint64_t bin) const;
    void order_slots(std::span<const std::uint64_t> bin_of_row, ThreadPool& pool);

    BinSlots slots_;
    std::vector<std::uint32_t> begin_;   // [slots + 1]
    std::vector<std::uint32_t> row_at_;  // [rows]
    std::vector<std::uint64_t> bin_at_;  // [rows] where bins are hashed, otherwise none
    std::vector<std::uint64_t> filled_;  // bit s: slot s holds rows
};

}  // namespace pgwarp
