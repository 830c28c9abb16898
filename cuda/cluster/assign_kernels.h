// The launchers behind assign.h. A call is one launch; the caller cuts the work so that launches are short.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cluster/packing.h"

namespace pgwarp::cuda
{

// The best two centroids of a row.
struct TwoBest {
    float first;
    std::uint32_t first_index;
    float second;  // exact only
    std::uint32_t second_index;
};

struct AssignTask {
    PackedRowsView rows;
    PackedCentroidsView centroids;
    std::size_t chunks;  // of 64 dimensions
    std::size_t clusters;
    // Tiles of centroids of this launch. Consecutive launches keep the best so far in `running`, one a row; null where
    // one launch takes all tiles. Only the launch of the last tile writes the results below.
    int first_tile;
    int end_tile;
    TwoBest* running;
    // training: labels are written and `changed` counts those that differ from before; exact: pairs are written.
    std::uint32_t* labels;
    std::uint32_t* changed;
    uint2* pairs;  // best two, nearest first; equal where there is one centroid
};

// Whether rows stay in shared memory while all centroids pass by (warp groups).
constexpr bool rows_stay(std::size_t chunks, bool exact)
{
    return chunks * (exact ? 2 : 1) <= 4;
}
// Whether a launch of warp groups may take a part of the centroids. Training whose rows stay always takes all of them;
// without the code for parts its kernel is a tenth faster.
constexpr bool takes_parts(bool exact, bool stay)
{
    return exact || !stay;
}

// Warp-group matrix instructions (compute capability 9.0).
void assign_warpgroup(const AssignTask& task, bool exact, int multiprocessors, cudaStream_t stream);
// Warp matrix instructions (7.5 and up).
void assign_portable(const AssignTask& task, bool exact, cudaStream_t stream);

// At most 16 dimensions, fp32 throughout. best: scratch [count].
inline constexpr std::size_t narrow_dimensions = 16;
struct NarrowTask {
    const float* rows;  // [count][dimensions]
    std::size_t count;
    std::size_t dimensions;
    const float* centroids;
    std::size_t clusters;
    const float* origin;  // of the frame
    const float* scale;
    bool dot;
    unsigned long long* best;
    std::uint32_t* labels;
    std::uint32_t* changed;  // may be null
};
void assign_narrow(const NarrowTask& task, cudaStream_t stream);

// labels[i] = the better of pairs[i] by fp32 arithmetic in the frame's scale; ties to the lower index.
void decide_pairs(const float* rows, std::size_t count, std::size_t dimensions, const float* centroids, bool dot,
                  const float* scale, const uint2* pairs, std::uint32_t* labels, cudaStream_t stream);

}  // namespace pgwarp::cuda
