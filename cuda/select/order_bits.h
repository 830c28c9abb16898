// Floats and doubles as unsigned integers of the same order. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <bit>
#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda
{

// bits: of a float or a double. -0 comes before 0. NaN comes before or after all numbers, depending on its sign.
template <class Bits>
PGWARP_HOST_DEVICE constexpr Bits order_of_bits(Bits bits)
{
    constexpr int top = 8 * sizeof(Bits) - 1;
    return bits ^ ((bits >> top) != 0 ? ~Bits{0} : Bits{1} << top);
}

template <class Bits>
PGWARP_HOST_DEVICE constexpr Bits bits_of_order(Bits order)
{
    constexpr int top = 8 * sizeof(Bits) - 1;
    return order ^ ((order >> top) != 0 ? Bits{1} << top : ~Bits{0});
}

// These use the device's own casts: with std::bit_cast the compiler generates longer code for a score that may be
// absent.
PGWARP_HOST_DEVICE inline std::uint32_t bits_of(float value)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(value);
#else
    return std::bit_cast<std::uint32_t>(value);
#endif
}

PGWARP_HOST_DEVICE inline std::uint64_t bits_of(double value)
{
#ifdef __CUDA_ARCH__
    return static_cast<std::uint64_t>(__double_as_longlong(value));
#else
    return std::bit_cast<std::uint64_t>(value);
#endif
}

PGWARP_HOST_DEVICE inline std::uint32_t order_of(float value)
{
    return order_of_bits(bits_of(value));
}

PGWARP_HOST_DEVICE inline std::uint64_t order_of(double value)
{
    return order_of_bits(bits_of(value));
}

PGWARP_HOST_DEVICE inline float float_of_order(std::uint32_t order)
{
    const std::uint32_t bits = bits_of_order(order);
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    return std::bit_cast<float>(bits);
#endif
}

PGWARP_HOST_DEVICE inline double double_of_order(std::uint64_t order)
{
    const std::uint64_t bits = bits_of_order(order);
#ifdef __CUDA_ARCH__
    return __longlong_as_double(static_cast<long long>(bits));
#else
    return std::bit_cast<double>(bits);
#endif
}

// The largest key. It stands for infinities and NaN, which are no candidates.
inline constexpr std::uint32_t no_key = 0xffffffff;

PGWARP_HOST_DEVICE inline std::uint32_t score_key(float score)
{
    const std::uint32_t bits = bits_of(score);
    if ((bits & 0x7f800000U) == 0x7f800000U) return no_key;
    return order_of_bits(bits);
}

}  // namespace pgwarp::cuda
