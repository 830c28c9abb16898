// Distances of rows of bits, by counting ones with run-time SIMD dispatch (Highway).
//
// A row is packed, eight bits a byte; unused bits of its last byte or word are 0. In builds, searches and logs a row of
// bits takes the place of a row of floats: it consists of words of 32 bits, and `dimensions` is their number. The
// functions of metric.h and distance.h accept such rows for the metrics of bits. No function reads the words as
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"

namespace pgwarp
{

inline constexpr std::size_t bits_of_word = 32;

// Returns the number of words that hold a row of `bits` bits.
inline constexpr std::size_t words_of_bits(std::size_t bits)
{
    return (bits + bits_of_word - 1) / bits_of_word;
}

// Returns the distance that the SQL operator returns, of rows of `bytes` bytes; all other distances of bits derive from
// it. hamming: number of differing bits; jaccard: 1 - |a and b| / |a or b|, and 1 if no bit is set in both.
double bit_distance(Metric metric, const void* a, const void* b, std::size_t bytes);

// out[i] = the distance of the query to row i of rows[count][words].
void bit_distances(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words,
                   double* out);

// The same rounded to floats: exact for hamming, off by at most half a unit in the last place for jaccard.
void bit_scores(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t words, float* out);
// The same for the rows with these numbers, with prefetch.
void bit_scores_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids,
                       std::size_t count, std::size_t words, float* out);

}  // namespace pgwarp
