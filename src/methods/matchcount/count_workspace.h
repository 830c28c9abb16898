// The memory and the options of searches for counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/matchcount/keyword_bitmaps.h"
#include "numeric/parallel.h"

namespace pgwarp::matchcount
{

struct CountedRow {
    std::uint32_t row;
    std::uint32_t count;
};

// The rows of interest, in order of count, descending, ties by row; and the means of a search.
struct CountOptions {
    CountedRow after = {0, 0xffffffff};       // those up to this one are left out
    std::uint32_t least = 0;                  // so are those of smaller counts
    const KeywordBitmaps* bitmaps = nullptr;  // of the same lists; null: none
    const CancelToken* cancel = nullptr;      // polled every few milliseconds
};

using Postings = std::span<const std::uint32_t>;

// Memory that searches use again and again. One thread at a time.
struct CountWorkspace {
    // `bytes`: of the counters that a search works on at a time. It changes the speed only.
    explicit CountWorkspace(std::size_t bytes = 524288)
        : slice_bytes(std::max(sizeof(std::uint32_t) * rows_of_bitmap_block, std::bit_floor(bytes)))
    {
    }

    std::size_t slice_bytes;
    BulkVector<std::byte> counters;            // of a slice
    std::vector<Postings> lists;               // of the items: the postings that are not counted yet
    BitmapSum bitmaps;                         // of the items, in the place of lists
    std::vector<std::uint32_t> rows;           // of all postings, where they are few
    std::vector<std::uint32_t> rows_of_count;  // [bound + 1]
    std::vector<CountedRow> table;             // the rows that passed the gate, ascending
};

}  // namespace pgwarp::matchcount
