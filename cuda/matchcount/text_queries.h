// The queries of a chunk on their way to the device, and the layout of its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "device/searcher.h"
#include "matchcount/text_alphabet.h"
#include "matchcount/text_view.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t everything = 0xffffffff;  // as a reach

// A chunk of queries of a batch.
struct TextPlan : ChunkPlan {
    std::span<const std::uint32_t> numbers;  // [count], in the batch
    std::uint32_t longest = 0;               // characters
    bool wide = false;                       // the characters themselves are needed
    bool one_round = false;  // the step `near` alone, where it has enough texts and the reach is everything
    std::uint64_t first_key = 0;

    // Where more results than this have one distance, the host searches.
    std::uint32_t capacity() const { return 8 * k + 4096; }
    std::uint32_t stride() const { return (longest + 3) / 4 * 4; }
    // Of the step `near`. One round takes the same for all small k: a page is the beginning of a larger one.
    std::uint32_t near_texts() const { return one_round ? std::max(1024U, 2 * k) : 1024 + 8 * k; }
};

// The largest distance of interest of a query, by the batch and its settings.
std::uint32_t reach_of(const SearchBatch& batch, std::uint32_t number);

// The memory of a chunk: lay_out_sent() takes the arrays that the host writes, lay_out_search() the others, which
// kernels write; both lie in device memory. Those of lay_out_sent(), and then the arrays of lay_out_read(), which the
// host reads or writes during the search, lie in page-locked memory too. Carvers may have no memory.
TextQueries lay_out_sent(const TextPlan& plan, Carver& memory);
void lay_out_search(const TextPlan& plan, Carver& memory, TextQueries& queries);
void lay_out_read(const TextPlan& plan, Carver& memory, TextQueries& queries);
// Writes the queries to page-locked memory.
void write_queries(const TextPlan& plan, const SearchBatch& batch, const TextAlphabet& alphabet,
                   const TextQueries& host);

}  // namespace pgwarp::cuda
