// The step from the k-NN graph to the edges of the graph, on the device. From the same lists come the same edges as
// from src/methods/graph/edges.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/context.h"
#include "methods/graph/edges.h"

namespace pgwarp::cuda::graph
{

// nearest: device, [rows][width]; out: device, [rows][degree]. width, degree <= 256. Waits for the device. Throws
// std::bad_alloc, CudaError.
void draw_edges(Context& context, const std::uint32_t* nearest, std::uint32_t rows, std::uint32_t width,
                std::uint32_t degree, std::uint32_t* out, cudaStream_t stream);

// A breadth-first search along neighbours (device, [rows][degree]) from the rows in `from`, which are distinct and at
// least one. Returns for each row its parent, the lowest one of several; root_row for the rows of `from`, unreached_row
// for rows without a path. Waits for the device. Throws std::bad_alloc, CudaError.
std::vector<std::uint32_t> reach_rows(Context& context, const std::uint32_t* neighbours, std::uint32_t rows,
                                      std::uint32_t degree, std::span<const std::uint32_t> from, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
