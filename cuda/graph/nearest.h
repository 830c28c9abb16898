// The k-NN graph that a graph is made from, on the device: all rows are queries of the exact search's proposing passes
// (passes/passes.h), slab by slab, and the best proposals of each are its neighbours. Scores in half precision decide:
// pruning goes by ranks, to which near ties do not matter.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "passes/passes.h"

namespace pgwarp::cuda::graph
{

inline constexpr std::uint32_t most_width = 256;
// Of fewer rows all are proposed, in no order: they are others' work.
inline constexpr std::uint32_t fewest_compared = 8192;

struct NearestJob {
    const ExactRows* rows = nullptr;
    // Device, a bit a row, or none: these are near to none, and have none near.
    const std::uint64_t* left_out = nullptr;
    std::uint32_t width = 0;       // at most most_width; rows: at least fewest_compared
    std::uint32_t* out = nullptr;  // device, [rows][width]: nearest first, then no_neighbour
    const CancelToken* cancel = nullptr;
    std::function<void(std::uint64_t rows)> progress;  // called between slabs; waits for the device before
};

void nearest_rows(Context& context, const NearestJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
