// Where searches begin: all queries of a batch are compared with the seeds, and each begins at the nearest of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/launch_config.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// Workspace of a batch. Shapes: scores [count][seed_stride(shape)]; values, columns [count][shape.offered].
struct SeedSpace {
    float* scores = nullptr;
    float* values = nullptr;
    std::uint32_t* columns = nullptr;
    std::byte* select = nullptr;  // select_bytes()
};

std::size_t seed_stride(const LaunchConfig& shape);
std::size_t select_bytes(const LaunchConfig& shape, std::uint32_t count);

// starts [count][shape.offered]: row numbers of the nearest seeds, or no_row_here. `queries` are prepared for
// the seeds. Not for bits.
void choose_starts(const GraphView& view, const LaunchConfig& shape, const rows::QueryView& queries,
                   std::uint32_t count, const SeedSpace& space, std::uint32_t shared_bytes, std::uint32_t* starts,
                   cudaStream_t stream);

// out [count][words]: the bits of queries, or of rows, [count][dimensions]: those of project_row()
// (methods/graph/stored_rows.h).
void project(const BitView& bits, const float* queries, std::uint32_t dimensions, std::uint32_t count,
             std::uint32_t* out, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
