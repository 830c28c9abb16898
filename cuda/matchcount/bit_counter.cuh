// Bit-sliced counters: 32 counters in a word of each plane, added to by full adders of bits (carry-save addition).
#pragma once

#include <cstdint>

namespace pgwarp::cuda::matchcount
{

// a + b + c = 2 * carry + sum, in each bit.
__device__ __forceinline__ std::uint32_t sum_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c)
{
    return a ^ b ^ c;
}
__device__ __forceinline__ std::uint32_t carry_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c)
{
    return (a & b) | (c & (a | b));
}

// `words` words of 32 counters each.
template <int planes, int words>
struct BitCounter {
    std::uint32_t plane[planes][words];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int p = 0; p < planes; ++p)
#pragma unroll
            for (int w = 0; w < words; ++w) plane[p][w] = 0;
    }

    // Adds a and b to plane p; returns the carries, of weight 2^(p + 1), in carry[].
    __device__ __forceinline__ void add(int p, const std::uint32_t (&a)[words], const std::uint32_t (&b)[words],
                                        std::uint32_t (&carry)[words])
    {
#pragma unroll
        for (int w = 0; w < words; ++w) {
            carry[w] = carry_bits(plane[p][w], a[w], b[w]);
            plane[p][w] = sum_bits(plane[p][w], a[w], b[w]);
        }
    }

    // Adds bits of weight 2^from. Few counters reach large numbers, so that the higher planes are often left out.
    __device__ __forceinline__ void ripple(int from, std::uint32_t (&carry)[words])
    {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
            if (p < from) continue;
            if (p == from + 2) {
                std::uint32_t any = 0;
#pragma unroll
                for (int w = 0; w < words; ++w) any |= carry[w];
                if (any == 0) return;
            }
#pragma unroll
            for (int w = 0; w < words; ++w) {
                const std::uint32_t both = plane[p][w] & carry[w];
                plane[p][w] ^= carry[w];
                carry[w] = both;
            }
        }
    }

    // reached[w]: the counters that are at least `least`.
    __device__ __forceinline__ void at_least(std::uint32_t least, std::uint32_t (&reached)[words]) const
    {
#pragma unroll
        for (int w = 0; w < words; ++w) reached[w] = least >> planes != 0 ? 0 : ~0U;
#pragma unroll
        for (int p = 0; p < planes; ++p) {
            const std::uint32_t clear = (least >> p & 1) - 1;
#pragma unroll
            for (int w = 0; w < words; ++w) reached[w] = carry_bits(reached[w], plane[p][w], clear);
        }
    }
};

}  // namespace pgwarp::cuda::matchcount
