// From the k-NN graph to the edges that searches follow, on the device: the same edges as src/methods/graph/edges.h
// draws from the same lists.
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

// nearest: device, [rows][width]; out: device, [rows][degree]. width, degree <= 256. Waits for the device.
void draw_edges(Context& context, const std::uint32_t* nearest, std::uint32_t rows, std::uint32_t width,
                std::uint32_t degree, std::uint32_t* out, cudaStream_t stream);

// A breadth-first search along neighbours (device, [rows][degree]) from different rows, at least one: the row that each
// was reached from, of several the lowest; root_row for those of `from`, unreached_row for what cannot be reached.
// Waits for the device.
std::vector<std::uint32_t> reach_rows(Context& context, const std::uint32_t* neighbours, std::uint32_t rows,
                                      std::uint32_t degree, std::span<const std::uint32_t> from, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
