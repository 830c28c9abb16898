// Reads of rows in page-locked host memory. Each read crosses the bus, so 8 neighbouring lanes read 128 bytes together
// and several such chunks before the first is used, and pass the elements to the lanes that need them.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda::rows
{

namespace detail
{
// Element `slot` of the 16 bytes of lane `source` of 8. Each lane may name another source and slot.
template <class T>
__device__ T element_of(const uint4& piece, std::uint32_t source, std::uint32_t slot)
{
    constexpr std::uint32_t of_word = 4 / sizeof(T);
    const auto from = static_cast<int>(source);
    const std::uint32_t words[4] = {
        __shfl_sync(0xffffffffU, piece.x, from, 8), __shfl_sync(0xffffffffU, piece.y, from, 8),
        __shfl_sync(0xffffffffU, piece.z, from, 8), __shfl_sync(0xffffffffU, piece.w, from, 8)};
    const std::uint32_t at = slot / of_word;
    std::uint32_t word = at < 2 ? (at == 0 ? words[0] : words[1]) : (at == 2 ? words[2] : words[3]);
    word >>= slot % of_word * sizeof(T) * 8;
    T element;
    __builtin_memcpy(&element, &word, sizeof(T));
    return element;
}
}  // namespace detail

// Calls use(d, element d of the row) on lane d % 8 of each group of 8, d ascending. The row is aligned and padded to 16
// bytes. All 32 lanes must call; each group has a row of its own, and all have the same dimensions.
template <class T, class Use>
__device__ void for_each_remote(const T* row, std::uint32_t dimensions, const Use& use)
{
    constexpr std::uint32_t each = 16 / sizeof(T);  // elements of a piece
    constexpr std::uint32_t chunk = 8 * each;       // elements of 8 pieces
    constexpr int ahead = 4;                        // chunks read before the first is used
    const std::uint32_t lane = threadIdx.x % 8;
    for (std::uint32_t base = 0; base < dimensions; base += ahead * chunk) {
        uint4 pieces[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const std::uint32_t at = base + i * chunk + lane * each;
            pieces[i] = at < dimensions ? *reinterpret_cast<const uint4*>(row + at) : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const std::uint32_t first = base + i * chunk;
            if (first >= dimensions) break;
#pragma unroll
            for (std::uint32_t step = 0; step < each; ++step) {
                const std::uint32_t within = step * 8 + lane;
                const T element = detail::element_of<T>(pieces[i], within / each, within % each);
                if (first + within < dimensions) use(first + within, element);
            }
        }
    }
}

}  // namespace pgwarp::cuda::rows
