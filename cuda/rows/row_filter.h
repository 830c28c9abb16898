// The predicates of the queries of a chunk, as kernels test rows by them: the words of protocol/predicates.h. Free of
// CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda::rows
{

// Whether a code lies in one of the ranges {first, last}, as PredicateTerm::contains() tells.
PGWARP_HOST_DEVICE inline bool lies_in(const std::uint64_t* ranges, std::uint32_t count, std::uint64_t code)
{
    std::uint32_t begin = 0;
    std::uint32_t end = count;  // the first range behind the code
    while (begin < end) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        if (ranges[2 * std::size_t{middle}] <= code) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return end > 0 && code <= ranges[2 * std::size_t{end} - 1];
}

// Whether a row with these codes passes a predicate.
PGWARP_HOST_DEVICE inline bool passes_words(const std::uint64_t* word, const std::uint64_t* codes)
{
    for (std::uint64_t terms = *word++; terms > 0; --terms) {
        const std::uint64_t head = *word++;
        const auto ranges = static_cast<std::uint32_t>(head >> 32);
        if (!lies_in(word, ranges, codes[static_cast<std::uint32_t>(head)])) return false;
        word += 2 * std::size_t{ranges};
    }
    return true;
}

// Whether a predicate's term of this column contains the code; without such a term every code does.
PGWARP_HOST_DEVICE inline bool admits_code(const std::uint64_t* word, std::uint32_t column, std::uint64_t code)
{
    for (std::uint64_t terms = *word++; terms > 0; --terms) {
        const std::uint64_t head = *word++;
        const auto ranges = static_cast<std::uint32_t>(head >> 32);
        if (static_cast<std::uint32_t>(head) == column) return lies_in(word, ranges, code);
        word += 2 * std::size_t{ranges};
    }
    return true;
}

// Where there are no filters, all rows pass.
struct FilterView {
    const std::uint64_t* attributes = nullptr;  // [rows][columns]
    const std::uint64_t* words = nullptr;       // of all predicates
    const std::uint32_t* begins = nullptr;      // [queries]: the first word of each predicate
    std::uint32_t columns = 0;

    FilterView from(std::size_t first) const
    {
        FilterView rest = *this;
        if (rest.begins != nullptr) rest.begins += first;
        return rest;
    }
    PGWARP_HOST_DEVICE bool passes(std::uint32_t query, std::uint32_t row) const
    {
        return begins == nullptr || passes_words(words + begins[query], attributes + std::size_t{row} * columns);
    }
};

}  // namespace pgwarp::cuda::rows
