// The texts of a mirror and the queries of a search, as kernels read them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "matchcount/text_launches.h"

namespace pgwarp::cuda
{

// Longer texts stay on the host: one of these takes a lane about a millisecond.
inline constexpr std::uint32_t most_text_length = 2000;
// Longer queries are the host's too.
inline constexpr std::uint32_t most_query_length = 508;

// Texts in order of (length, row). A place is a number in this order.
struct TextsView {
    std::uint32_t count = 0;
    std::uint32_t longest = 0;                       // characters
    const std::uint32_t* lengths = nullptr;          // [count], with text_is_ambiguous
    const std::uint32_t* rows = nullptr;             // [count]
    const std::uint32_t* begins = nullptr;           // [count], in 16 bytes of `ids`
    const uint4* ids = nullptr;                      // a byte a character; zeros fill the last 16 bytes of a text
    const uint4* counts = nullptr;                   // [2][count]: bytes, the characters of each group, at most 255
    const std::uint32_t* first_of_length = nullptr;  // [longest + 2], places
    const std::uint8_t* groups = nullptr;            // [256], of ids
    // The characters of ambiguous texts, from wide_begins[place] on; null where no text is ambiguous.
    const std::uint64_t* wide_begins = nullptr;
    const std::uint32_t* wide = nullptr;
    const std::uint64_t* dead = nullptr;  // bit i: place i; may be null
};

// Of a length: the text has a character that shares its id with another.
inline constexpr std::uint32_t text_is_ambiguous = 0x80000000;

// Queries and their answers so far. A key is the distance << 32 | row.
struct TextQueries {
    static constexpr std::uint32_t distances = 512;  // whose results are counted
    static constexpr std::uint32_t bounds = most_bounds;

    std::uint32_t count = 0;
    std::uint32_t k = 0;
    std::uint32_t capacity = 0;                 // keys of a query; more are lost
    std::uint32_t stride = 0;                   // characters of a query, rounded up
    std::uint32_t near_texts = 0;               // that the step `near` compares about, or more
    const std::uint32_t* lengths = nullptr;     // [count]
    const std::uint8_t* ids = nullptr;          // [count][stride]
    const std::uint32_t* wide = nullptr;        // [count][stride]: the characters; null where no text is ambiguous
    const std::uint64_t* first_keys = nullptr;  // [count]: smaller keys are no results
    const std::uint32_t* reach = nullptr;       // [count]: larger distances are no results

    const std::uint32_t* rest = nullptr;   // the queries that the step `rest` takes; null: all
    std::uint32_t* near = nullptr;         // [count]: texts with this bound or a smaller one were near
    std::uint32_t* windows = nullptr;      // [count]: the limits before the step `rest`: it takes texts of such lengths
    std::uint32_t* limits = nullptr;       // [count]: larger distances are no results
    std::uint64_t* last_keys = nullptr;    // [count]: larger keys are no results
    std::uint32_t* found = nullptr;        // [count]: keys
    std::uint64_t* keys = nullptr;         // [count][capacity]; all bits set where there is none yet
    std::uint32_t* of_distance = nullptr;  // [count][distances]: keys
    std::uint32_t* of_bound = nullptr;     // [count][bounds]: texts of a sample
};

}  // namespace pgwarp::cuda
