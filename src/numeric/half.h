// IEEE binary16 values: their bits, and conversions to and from float that give the same bits on all processors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace pgwarp
{

using half_bits = std::uint16_t;

// Returns the exact value of a half. Free of branches, so that compilers vectorise loops over it.
inline float float_of_half(half_bits half)
{
    const std::uint32_t magnitude = half & 0x7FFFU;
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    // As float bits the exponent is 112 too small; the product corrects it and normalises subnormals.
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t special = (magnitude << 13) | 0x7F800000U;  // infinity or NaN
    return std::bit_cast<float>((magnitude > 0x7BFFU ? special : std::bit_cast<std::uint32_t>(value)) | sign);
}

// Returns the nearest half, ties to even; values that are too large become infinity, too small ones zero.
inline half_bits half_of_float(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    // Adding 0.5, whose last place is 2^-24, makes the adder round subnormal results.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    const std::uint32_t normal = (magnitude + odd + 0xFFFU - (112U << 23)) >> 13;
    const std::uint32_t not_a_number = ((magnitude >> 13) & 0x3FFU) | 0x7E00U;
    std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
    result = magnitude > 0x477FEFFFU ? 0x7C00U : result;
    result = magnitude > 0x7F800000U ? not_a_number : result;
    return static_cast<half_bits>(result | ((bits >> 16) & 0x8000U));
}

}  // namespace pgwarp
