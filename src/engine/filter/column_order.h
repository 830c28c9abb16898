// The rows of an index in the order of one attribute: how many rows have codes of a range, and which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/filter/coded_rows.h"
#include "numeric/parallel.h"
#include "protocol/predicates.h"

namespace pgwarp
{

class ColumnOrder
{
public:
    // attributes [rows][columns]; they outlive this.
    ColumnOrder(std::span<const std::uint64_t> attributes, std::size_t columns, std::size_t column, ThreadPool& pool);

    // The rows whose codes lie in the range, by (code, row).
    std::span<const std::uint32_t> rows_of(const CodeRange& range) const;
    // The number of rows of a term.
    std::uint64_t count(const PredicateTerm& term) const;
    std::uint64_t memory_bytes() const;

private:
    std::uint64_t code_at(std::size_t place) const { return attributes_[rows_[place] * columns_ + column_]; }
    bool place_codes(std::span<const CodedRow> coded);
    std::size_t first_above(std::uint64_t code, bool equal_too) const;

    std::span<const std::uint64_t> attributes_;
    std::size_t columns_;
    std::size_t column_;
    std::vector<std::uint32_t> rows_;
    // Where the codes lie near each other, the first place of a code that is not below first_code_ + i, for each number
    // i up to one behind the last.
    std::uint64_t first_code_ = 0;
    std::vector<std::uint32_t> place_of_;
    // Else, so that a search reads few rows or none: where codes are few, each of them and its first place; otherwise
    // the code of every sample_step-th place.
    std::vector<std::uint64_t> samples_;
    std::vector<std::uint32_t> places_;
    bool samples_all_ = false;
};

}  // namespace pgwarp
