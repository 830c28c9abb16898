// The queries of a chunk on their way to the device, and the layout of its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "device/carver.h"
#include "matchcount/text_alphabet.h"
#include "matchcount/text_scan.h"
#include "matchcount/text_view.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t everything = 0xffffffff;  // as a reach

// Some queries of a batch.
struct TextChunk {
    std::span<const std::uint32_t> numbers;  // in the batch
    std::uint32_t k = 0;
    std::uint32_t longest = 0;  // characters
    bool wide = false;          // the characters themselves are needed
    bool one_round = false;     // the step `near` alone, where it has enough texts and the reach is everything
    std::uint64_t first_key = 0;

    std::uint32_t count() const { return static_cast<std::uint32_t>(numbers.size()); }
    // Where more results than this have one distance, the host searches.
    std::uint32_t capacity() const { return 8 * k + 4096; }
    std::uint32_t stride() const { return (longest + 3) / 4 * 4; }
    // Of the step `near`. One round takes the same for all small k: a page is the beginning of a larger one.
    std::uint32_t near_texts() const { return one_round ? std::max(1024U, 2 * k) : 1024 + 8 * k; }
    // The largest distance of interest of the chunk's query i, by the batch and its settings.
    std::uint32_t reach(const SearchBatch& batch, std::size_t i) const;
};

// The bytes of a query of such a chunk in device memory, about.
std::size_t text_query_bytes(const TextChunk& chunk);
// Takes the arrays of the queries from `sent`, in this order, and those of the search from `memory`. The arrays of both
// may be carved without memory.
TextQueries lay_out_sent(const TextChunk& chunk, Carver& sent);
void lay_out_search(const TextChunk& chunk, Carver& memory, TextQueries& queries, TextAnswers& answers);
// Writes the queries to host memory that was laid out by lay_out_sent().
void write_queries(const TextChunk& chunk, const SearchBatch& batch, const TextAlphabet& alphabet,
                   const TextQueries& host);

}  // namespace pgwarp::cuda
