// Searches for the rows of largest match count on the device (GENIE, section 4.2), many queries at a time. A block
// counts one query in one range of rows, with the counters in shared memory, and then lets the rows pass that may be
// among the k best. Counts, order and ties are those of pgwarp::matchcount::search_counts.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "matchcount/counted_rows.h"
#include "matchcount/keyword_lists.h"

namespace pgwarp::cuda::matchcount
{

// A batch of queries. All arrays are in device memory.
struct CountQueries {
    std::uint32_t count = 0;
    const std::uint32_t* item_offsets = nullptr;  // [count + 1]
    const Item* items = nullptr;                  // query i: [item_offsets[i], item_offsets[i + 1])
    // No count of a row exceeds it: the maximum of count_bound() over the queries. It decides the width of the
    // counters: below 2^8 and below 2^16 they are faster.
    std::uint32_t bound = 0;
    const RowWindow* windows = nullptr;    // [count]: rows outside are left out; null: all rows
    const std::uint32_t* least = nullptr;  // [count], >= 1: rows of smaller counts are left out; null: see each search
    const std::uint32_t* dead = nullptr;   // bit i: row i is left out; null: none
    // About the most postings of a query, for the size of launches. 0: not many.
    std::uint64_t postings = 0;
};

// Returns a bound of the counts of every row, from host memory. Throws BadRequest where it exceeds 2^31 - 1.
std::uint32_t count_bound(const KeywordLists& lists, std::span<const Item> items);

// Bytes of workspace of top_counts, which is aligned for a Carver. Of the queries it reads the number and the bound.
std::size_t top_counts_workspace_bytes(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t k,
                                       const Context& context);

// The k rows of largest count of each query, by count, descending, ties by row. Without queries.least, rows of count 0
// follow in row order where fewer match. Places beyond found[q] are not written. k >= 1. Asynchronous, like all
// functions here. Throws CudaError, std::invalid_argument for k = 0.
void top_counts(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t k, const CountedRows& out,
                std::byte* workspace, Context& context, cudaStream_t stream);

// All rows of each query whose counts are at least queries.least[q] (1 without), in any order: rows[q * capacity + i]
// and counts (may be null) for i < found[q]. Where found[q] exceeds capacity, an unspecified selection of `capacity`
// rows is there, and found[q] is the true number.
void rows_of_counts(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t capacity,
                    const CountedRows& out, Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
