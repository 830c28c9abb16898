// Distances of rows of bits, by counting ones with run-time SIMD dispatch (Highway).
//
// A row is packed: eight bits a byte, and what is left of its last byte or word is 0. Where rows of floats go, in
// builds, searches and logs, a row of bits goes as words of 32 bits in the floats' place, `dimensions` being their
// number: the functions of metric.h and distance.h take them so for the metrics of bits. Nothing reads such words as
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"

namespace pgwarp
{

inline constexpr std::size_t bits_of_word = 32;

inline constexpr std::size_t words_of_bits(std::size_t bits)
{
    return (bits + bits_of_word - 1) / bits_of_word;
}

// The distance that the SQL operator returns, of rows of so many bytes: the one routine behind all others.
// hamming: bits that differ; jaccard: 1 - |a and b| / |a or b|, and 1 where no bit is set in both.
double bit_distance(Metric metric, const void* a, const void* b, std::size_t bytes);

// out[i] = the distance of the query to row i of rows[count][words].
void bit_distances(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words,
                   double* out);

// The same rounded to floats: of hamming exact, of jaccard off by half a rounding.
void bit_scores(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words, float* out);
// ... of the rows of these numbers, with prefetch.
void bit_scores_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids,
                       std::size_t count, std::size_t words, float* out);

}  // namespace pgwarp
