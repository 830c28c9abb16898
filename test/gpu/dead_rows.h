// Dead rows for the tests of match counts.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "methods/row_bitmap.h"

namespace pgwarp::cuda::matchcount
{

// Returns a bitmap in which one of `one_of` rows is dead.
inline std::vector<std::uint64_t> random_dead(std::mt19937& random, std::uint32_t rows, unsigned one_of)
{
    std::vector<std::uint64_t> dead(rows / 64 + 2);
    for (std::uint32_t row = 0; row < rows; ++row)
        if (random() % one_of == 0) set_bit(dead, row);
    return dead;
}

}  // namespace pgwarp::cuda::matchcount
