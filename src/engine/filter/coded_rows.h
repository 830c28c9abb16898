// Rows sorted by a number of 64 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numeric/parallel.h"

namespace pgwarp
{

struct CodedRow {
    std::uint64_t code;
    std::uint32_t row;
};

inline bool operator<(const CodedRow& a, const CodedRow& b)
{
    return a.code != b.code ? a.code < b.code : a.row < b.row;
}

// Sorts pieces, then merges pairs of neighbours until one is left.
inline void sort_rows(std::vector<CodedRow>& rows, ThreadPool& pool)
{
    constexpr std::size_t fewest_sorted = 16384;  // rows that a thread sorts at a time
    std::size_t piece = std::max(fewest_sorted, (rows.size() + pool.threads() - 1) / pool.threads());
    const auto at = [&](std::size_t place) {
        return rows.begin() + static_cast<std::ptrdiff_t>(std::min(place, rows.size()));
    };
    pool.parallel_for(rows.size(), piece, [&](std::size_t begin, std::size_t end) { std::sort(at(begin), at(end)); });
    for (; piece < rows.size(); piece *= 2) {
        pool.parallel_for(rows.size(), 2 * piece, [&](std::size_t begin, std::size_t end) {
            std::inplace_merge(at(begin), at(begin + piece), at(end));
        });
    }
}

}  // namespace pgwarp
