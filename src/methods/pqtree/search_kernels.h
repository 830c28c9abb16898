// The loops of a search, with run-time SIMD dispatch (Highway): scores of centroids and leaves, and of codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/pqtree/lines.h"

namespace pgwarp
{

inline constexpr std::size_t packed_block = 16;  // vectors side by side

// Rounds up to whole blocks.
inline std::size_t padded(std::size_t count)
{
    return (count + packed_block - 1) / packed_block * packed_block;
}

// Scores vectors in blocks of 16, dimension by dimension: values [padded(count) / 16][dimensions][16]. out[i] = the
// score of vector i for a query: its squared L2 distance, or its negative inner product; `out` has room for
// padded(count) floats.
void score_packed(bool squared, const float* values, std::size_t count, std::size_t dimensions, const float* query,
                  float* out);

// The parameters of terms (lines.h) of the lines of one line part, an array each, padded to whole blocks. lengths: of
// line_lengths().
struct LineArrays {
    std::vector<std::int32_t> from;  // centroids of the first level
    std::vector<std::int32_t> to;
    std::vector<float> first;  // lambda of the byte 0
    std::vector<float> step;
    std::vector<float> length;

    LineArrays(const LineTable& table, std::size_t line_part, std::span<const float> lengths);
};

// Of a query's terms of a line part.
struct TermRange {
    float least;     // base
    float most;      // base
    float steepest;  // slope
};

// A query's terms in 16 bits: base in the upper half of a word, slope in the lower. The score of a row is
// unit * (sum of base * base_weight + slope * place) + its bias + shift. No sum exceeds 32 bits.
struct CodeTerms {
    std::vector<std::int32_t> words;  // [padded line parts][256]
    std::int32_t base_weight = 1;
    float unit = 0;
    float shift = 0;
};

// Makes the terms of a query; centroid_scores [line parts][stride].
void make_terms(std::span<const LineArrays> lines, const float* centroid_scores, std::size_t stride, CodeTerms& terms);

// out[i] = the score of the row at positions[i]. codes [row][2][padded_parts], lines first; padded_parts: of
// padded(line parts).
void score_codes(const CodeTerms& terms, const std::uint8_t* codes, const float* biases, std::size_t padded_parts,
                 const std::uint32_t* positions, std::size_t count, float* out);

}  // namespace pgwarp
