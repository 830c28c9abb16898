// The loops of searches of sparse vectors that run-time SIMD dispatch (Highway) is for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgwarp::matchcount
{

// sums[i] += values[i] * factor.
void add_products(const std::int16_t* values, std::size_t count, float factor, float* sums);

// sums[i] += the number between 0 and `most` that is nearest to values[i] * factor.
void add_clamped_products(const std::int16_t* values, std::size_t count, float factor, float most, float* sums);

// Returns the first i in [begin, end) where sums[i] is between the limits; `end` where there is none.
std::size_t find_between(const float* sums, std::size_t begin, std::size_t end, float least, float most);

}  // namespace pgwarp::matchcount
