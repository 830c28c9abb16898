// Rows of bits, and their distances bit by bit.
#pragma once

#include <bit>
#include <random>
#include <vector>

#include "numeric/bits.h"

namespace pgwarp::test
{

// [count][words_of_bits(bits)]: rows near one of `centres` rows, each bit of which is set with `density` and differs
// from the centre's with `noise`.
inline std::vector<float> clustered_bits(std::size_t count, std::size_t bits, unsigned seed, std::size_t centres = 16,
                                         double density = 0.5, double noise = 0.1)
{
    std::mt19937 generator(seed);
    std::bernoulli_distribution is_set(density);
    std::vector<std::vector<bool>> centre(centres, std::vector<bool>(bits));
    for (auto& row : centre)
        for (std::size_t bit = 0; bit < bits; ++bit) row[bit] = is_set(generator);
    std::bernoulli_distribution is_drawn(noise);
    const std::size_t words = words_of_bits(bits);
    std::vector<float> rows(count * words);
    for (std::size_t i = 0; i < count; ++i) {
        const auto& near = centre[generator() % centres];
        std::vector<std::uint32_t> packed(words, 0);
        for (std::size_t bit = 0; bit < bits; ++bit) {
            const bool set = is_drawn(generator) ? is_set(generator) : static_cast<bool>(near[bit]);
            packed[bit / 32] |= static_cast<std::uint32_t>(set) << (bit % 32);
        }
        for (std::size_t word = 0; word < words; ++word) rows[i * words + word] = std::bit_cast<float>(packed[word]);
    }
    return rows;
}

inline double naive_bit_distance(Metric metric, const float* a, const float* b, std::size_t words)
{
    double differing = 0;
    double both = 0;
    double either = 0;
    for (std::size_t bit = 0; bit < 32 * words; ++bit) {
        const bool x = ((std::bit_cast<std::uint32_t>(a[bit / 32]) >> (bit % 32)) & 1U) != 0;
        const bool y = ((std::bit_cast<std::uint32_t>(b[bit / 32]) >> (bit % 32)) & 1U) != 0;
        differing += x != y ? 1 : 0;
        both += x && y ? 1 : 0;
        either += x || y ? 1 : 0;
    }
    if (metric == Metric::hamming) return differing;
    return both == 0 ? 1 : 1 - both / either;
}

}  // namespace pgwarp::test
