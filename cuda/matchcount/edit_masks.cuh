// The match masks of a query in shared memory: for each id of a character the positions of the query that have it, 32 a
// word. A row of the table has the words of all ids; rows of zeros lie before and behind those of the query, so that a
// band may begin and end outside of it. Id 0 fills texts up to their last word: it matches everywhere, which leaves
// distances along a diagonal as they are.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda
{

inline constexpr std::uint32_t mask_ids = 256;
inline constexpr std::uint32_t mask_row_bytes = mask_ids * sizeof(std::uint32_t);
inline constexpr std::uint32_t mask_rows_before = 8;
inline constexpr std::uint32_t mask_rows_behind = 9;

constexpr std::uint32_t mask_words(std::uint32_t length)
{
    return (length + 31) / 32;
}
constexpr std::uint32_t mask_rows(std::uint32_t length)
{
    return mask_rows_before + mask_words(length) + mask_rows_behind;
}
constexpr std::size_t mask_bytes(std::uint32_t length)
{
    return std::size_t{mask_rows(length)} * mask_ids * sizeof(std::uint32_t);
}

// Fills table [mask_rows(length)][mask_ids]. Called by all threads of the block; the caller waits for them afterwards.
__device__ inline void fill_masks(const std::uint8_t* ids, std::uint32_t length, std::uint32_t* table)
{
    for (std::uint32_t i = threadIdx.x; i < mask_rows(length) * mask_ids; i += blockDim.x)
        table[i] = i % mask_ids == 0 ? 0xffffffff : 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < length; i += blockDim.x) {
        // Characters that no text has, of id 0, match nothing.
        if (ids[i] != 0) atomicOr(&table[(mask_rows_before + i / 32) * mask_ids + ids[i]], 1U << i % 32);
    }
}

}  // namespace pgwarp::cuda
