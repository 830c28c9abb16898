// The k-NN graph of all rows, on the device. All rows are queries of the proposing passes of exact search
// (passes/passes.h), slab by slab, and the best proposals of each are its neighbours. Scores in half precision are
// enough: pruning uses ranks, to which near ties do not matter.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "passes/passes.h"

namespace pgwarp::cuda::graph
{

inline constexpr std::uint32_t most_width = 256;
// The fewest rows that nearest_rows() takes: of fewer, all rows are proposed unordered.
inline constexpr std::uint32_t fewest_compared = 8192;

struct NearestJob {
    const ExactRows* rows = nullptr;
    // Device, one bit for each row, or null: rows without neighbours that are no neighbours either.
    const std::uint64_t* left_out = nullptr;
    std::uint32_t width = 0;       // at most most_width; rows: at least fewest_compared
    std::uint32_t* out = nullptr;  // device, [rows][width]: nearest first, then no_neighbour
    const CancelToken* cancel = nullptr;
    std::function<void(std::uint64_t rows)> progress;  // called before each slab, after the slab before is done
};

void nearest_rows(Context& context, const NearestJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
