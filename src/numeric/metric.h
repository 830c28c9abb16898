// The metrics and the canonical distance: the one routine whose value every method returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/half.h"

namespace pgwarp
{

// Values are stored in index pages and sent over the protocol: never renumber.
enum class Metric : std::uint8_t {
    l2 = 1,             // operator <->
    inner_product = 2,  // operator <#>, the negative inner product
    cosine = 3,         // operator <=>
    l1 = 4,             // operator <+>
    hamming = 5,        // operator <~>, of bits
    jaccard = 6,        // operator <%>, of bits
    // Of text (numeric/text_pattern.h):
    edit = 7,                 // operator <~~>, the Levenshtein distance
    edit_transpositions = 8,  // operator <~^~>, the restricted Damerau distance
    edit_substring = 9,       // operator >>~~<<, the Levenshtein distance of the query to the nearest substring
    gram_jaccard = 10,        // operator <%%>, the Jaccard distance of 3-grams
    // Of sets, attributes (protocol/part_rows.h) and bags:
    overlap = 11,      // operator <&>, the negative number of common parts
    set_jaccard = 12,  // operator <%>, the Jaccard distance of sets
    bm25 = 13,         // operator <&>, the negative BM25 score of bags (protocol/bag_rows.h)
};
inline constexpr Metric last_metric = Metric::bm25;

// Whether rows are bits, packed into words that take the place of floats (numeric/bits.h).
inline constexpr bool is_of_bits(Metric metric)
{
    return metric == Metric::hamming || metric == Metric::jaccard;
}

inline constexpr bool is_of_text(Metric metric)
{
    return metric >= Metric::edit && metric <= Metric::gram_jaccard;
}

inline constexpr bool is_of_parts(Metric metric)
{
    return metric >= Metric::overlap && metric <= Metric::bm25;
}

// Returns the distance that the SQL operator returns, accumulated in float64 in an order that depends on `dimensions`
// alone, so that every device, batch width and instruction set gives the same bits. Smaller is nearer for every metric.
// The cosine distance of a zero vector is NaN, as in pgvector.
double canonical_distance(Metric metric, const float* a, const float* b, std::size_t dimensions);

// The parts of canonical distances, for callers that need one alone.
double canonical_l2_squared(const float* a, const float* b, std::size_t dimensions);
double canonical_dot(const float* a, const float* b, std::size_t dimensions);
double canonical_l1(const float* a, const float* b, std::size_t dimensions);
// The L2 norm.
double canonical_norm(const float* a, std::size_t dimensions);

// For halves: the same bits as for their values as floats.
double canonical_distance(Metric metric, const half_bits* a, const half_bits* b, std::size_t dimensions);
double canonical_distance(Metric metric, const float* a, const half_bits* b, std::size_t dimensions);
double canonical_l2_squared(const half_bits* a, const half_bits* b, std::size_t dimensions);
double canonical_dot(const half_bits* a, const half_bits* b, std::size_t dimensions);
double canonical_norm(const half_bits* a, std::size_t dimensions);

}  // namespace pgwarp
