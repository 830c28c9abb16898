// The inverted index of rows of keywords in device memory (GENIE, section 4.1), made there. Rows are divided into
// ranges of 2^16, and each range has its own lists, so that a posting is a 16-bit number and the counters of a range
// fit into shared memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "device/memory.h"
#include "methods/matchcount/match_count.h"

namespace pgwarp::cuda::matchcount
{

using pgwarp::matchcount::Item;

inline constexpr std::uint32_t range_rows = 1U << 16;

// Rows as lists of keywords, as pgwarp::matchcount::KeywordRows, in device memory. Fewer than 2^31 keywords in any
// 2^16 rows from a multiple of 2^16 on.
struct DeviceKeywordRows {
    std::uint32_t rows = 0;
    const std::uint64_t* offsets = nullptr;   // [rows + 1]; offsets[0] may exceed 0
    const std::uint32_t* keywords = nullptr;  // row i: [offsets[i], offsets[i + 1])
};

// The index as kernels read it. The postings of range r are list_array[range_starts[r], range_starts[r + 1]), by
// keyword, and in the order of bank_order.h within a list. Its lists have numbers from 0, by keyword;
// positions_of(r)[number] is the start of a list less range_starts[r], with one entry more at the end. Where keywords
// are dense, the number of a list is its keyword, and positions_of(r) is positions + r * (universe + 1); where they are
// sparse, the keywords that occur in range r are keywords[list_starts[r], list_starts[r + 1]), ascending, and
// positions_of(r) is positions + list_starts[r] + r.
struct KeywordListsView {
    std::uint32_t rows = 0;
    std::uint32_t ranges = 0;
    std::uint32_t universe = 0;                   // dense: all keywords are below it; 0: sparse
    const std::uint64_t* range_starts = nullptr;  // [ranges + 1]
    const std::uint64_t* list_starts = nullptr;   // sparse: [ranges + 1]
    const std::uint32_t* keywords = nullptr;      // sparse: [list_starts[ranges]]
    const std::uint32_t* positions = nullptr;
    const std::uint16_t* list_array = nullptr;  // row numbers less the range's first row
};

class KeywordLists
{
public:
    KeywordLists() = default;
    // Waits. The stream must outlive the lists. Memory beside the result: about 26 bytes a posting of the largest
    // range. Throws BadRequest past the limits of DeviceKeywordRows, std::bad_alloc.
    KeywordLists(const DeviceKeywordRows& rows, MemoryPool& pool, const Context::Lease& stream);

    KeywordListsView view() const;
    std::uint32_t rows() const { return rows_; }
    std::uint64_t postings() const { return list_array_.size(); }
    std::uint32_t longest_row() const { return longest_row_; }    // keywords
    std::uint32_t most_repeats() const { return most_repeats_; }  // of one keyword in one row
    std::uint64_t memory_bytes() const;

private:
    std::uint32_t rows_ = 0;
    std::uint32_t universe_ = 0;
    std::uint32_t longest_row_ = 0;
    std::uint32_t most_repeats_ = 0;
    DeviceArray<std::uint64_t> range_starts_;
    DeviceArray<std::uint64_t> list_starts_;
    DeviceArray<std::uint32_t> keywords_;
    DeviceArray<std::uint32_t> positions_;
    DeviceArray<std::uint16_t> list_array_;
};

}  // namespace pgwarp::cuda::matchcount
