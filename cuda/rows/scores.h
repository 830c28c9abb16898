// Outputs of scans: all scores, or the scores within a limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t scan_queries = 64;  // queries of a tile

// Writes scores[query * stride + slot], infinite for padding and dead rows. The slots of a query number the positions
// that it is compared with.
struct DenseScores {
    float* scores = nullptr;
    std::size_t stride = 0;  // even; a multiple of 32 where there are minima
    // Keys (select/order_bits.h) of the least score of every 32 slots: minima[query * stride / 32 + slot / 32]. May be
    // null.
    std::uint32_t* minima = nullptr;
};

// Appends each score that is at most the query's limit: candidates[query * capacity + counts[query]++]. A count may
// exceed the capacity: the candidates beyond are lost, and the scan skips the rest of such a query.
struct LimitedScores {
    const float* limits = nullptr;        // [queries]
    std::uint64_t* candidates = nullptr;  // score_key(score) << 32 | position
    std::uint32_t* counts = nullptr;      // [queries]
    std::uint32_t capacity = 0;
};

}  // namespace pgwarp::cuda::rows
