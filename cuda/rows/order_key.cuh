// Floats and doubles as unsigned numbers in the same order. Scores that are no candidates map to the last key.
#pragma once

#include <bit>
#include <cstdint>

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t no_key = 0xffffffff;

// no_key for infinities and NaN.
__device__ inline std::uint32_t order_key(float score)
{
    const std::uint32_t bits = __float_as_uint(score);
    if ((bits & 0x7f800000U) == 0x7f800000U) return no_key;
    return bits ^ ((bits >> 31) != 0 ? 0xffffffffU : 0x80000000U);
}

__device__ inline float score_of_key(std::uint32_t key)
{
    return __uint_as_float(key ^ ((key >> 31) != 0 ? 0x80000000U : 0xffffffffU));
}

__device__ inline std::uint64_t order_key(double value)
{
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(value));
    return bits ^ ((bits >> 63) != 0 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

// The same on the host.
inline std::uint64_t host_order_key(double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
    return bits ^ ((bits >> 63) != 0 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

__device__ inline double value_of_key(std::uint64_t key)
{
    return __longlong_as_double(
        static_cast<long long>(key ^ ((key >> 63) != 0 ? std::uint64_t{1} << 63 : ~std::uint64_t{0})));
}

}  // namespace pgwarp::cuda::rows
