// The numbers of a query's characters by group, and the bound of its distance to a text by them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "matchcount/text_view.h"

namespace pgwarp::cuda
{

struct TextCounts {
    uint4 halves[2];
};

// Of a query: 32 bytes, and the number of its characters that no text has.
struct QueryCounts {
    TextCounts counts;
    std::uint32_t unknown;
};

// Counts the characters of a query, by all threads of a block; the caller waits for them afterwards. bins: [33],
// shared.
__device__ inline void count_characters(const TextsView& texts, const std::uint8_t* ids, std::uint32_t length,
                                        std::uint32_t* bins)
{
    if (threadIdx.x < 33) bins[threadIdx.x] = 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < length; i += blockDim.x)
        atomicAdd(&bins[ids[i] == 0 ? 32 : texts.groups[ids[i]]], 1U);
}

__device__ inline QueryCounts read_counts(const std::uint32_t* bins)
{
    QueryCounts query;
    std::uint32_t words[8];
#pragma unroll
    for (int w = 0; w < 8; ++w) {
        words[w] = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) words[w] |= min(bins[4 * w + i], 255U) << 8 * i;
    }
    query.counts.halves[0] = {words[0], words[1], words[2], words[3]};
    query.counts.halves[1] = {words[4], words[5], words[6], words[7]};
    query.unknown = bins[32];
    return query;
}

__device__ inline TextCounts load_counts(const TextsView& texts, std::uint32_t place)
{
    return {{__ldg(texts.counts + place), __ldg(texts.counts + texts.count + place)}};
}

// Returns a lower bound of the distance of a query and a text of these lengths.
__device__ inline std::uint32_t least_distance(const QueryCounts& query, std::uint32_t query_length,
                                               const TextCounts& text, std::uint32_t text_length)
{
    std::uint32_t differences = query.unknown;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4& a = query.counts.halves[half];
        const uint4& b = text.halves[half];
        differences += __vsadu4(a.x, b.x) + __vsadu4(a.y, b.y) + __vsadu4(a.z, b.z) + __vsadu4(a.w, b.w);
    }
    // Numbers above 255 are cut, so that the differences may be fewer than that of the lengths.
    differences = max(differences, max(query_length, text_length) - min(query_length, text_length));
    // Of the longer text, the characters that the other one lacks: differences = both lengths - 2 * common.
    const std::uint32_t common = (query_length + text_length - differences) / 2;
    return max(query_length, text_length) - common;
}

}  // namespace pgwarp::cuda
