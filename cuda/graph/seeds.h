// The starts of searches: all queries of a batch are compared with the seeds, and each search starts at the nearest.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/launch_config.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// The workspace of a batch: scores [count][seed_stride(shape)]; values, columns [count][shape.offered].
struct SeedSpace {
    float* scores = nullptr;
    float* values = nullptr;
    std::uint32_t* columns = nullptr;
    std::byte* select = nullptr;  // select_bytes() bytes
};

std::size_t seed_stride(const LaunchConfig& shape);
std::size_t select_bytes(const LaunchConfig& shape, std::uint32_t count);

// Writes starts [count][shape.offered]: row numbers of the nearest seeds, or no_row_here. queries: prepared for the
// seeds. Not for rows as bits. Asynchronous. Throws CudaError.
void choose_starts(const GraphView& view, const LaunchConfig& shape, const rows::QueryView& queries,
                   std::uint32_t count, const SeedSpace& space, std::uint32_t shared_bytes, std::uint32_t* starts,
                   cudaStream_t stream);

// Writes out [count][words]: the bits of queries or rows [count][dimensions], as project_row() computes them
// (methods/graph/stored_rows.h). Asynchronous. Throws CudaError.
void project(const BitView& bits, const float* queries, std::uint32_t dimensions, std::uint32_t count,
             std::uint32_t* out, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
