// What a graph's mirror computes on the device while it loads.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "index/graph/edge_changes.h"

namespace pgwarp::cuda::graph
{

// out[i] = i for rows, ivfadc::no_row from there to `count`.
void number_rows(std::uint32_t rows, std::size_t count, std::uint32_t* out, cudaStream_t stream);
// Makes these changes in neighbours [rows][degree], each of another place.
void change_edges(const EdgeChange* changes, std::size_t count, std::size_t degree, std::uint32_t* neighbours,
                  cudaStream_t stream);
// Adds to wrong[0] how many of neighbours[0, count) are neither rows nor no_neighbour.
void count_wrong(const std::uint32_t* neighbours, std::size_t count, std::uint32_t rows, std::uint32_t* wrong,
                 cudaStream_t stream);
// The halves and terms of these rows; zeros and infinity from `count` to `padded`.
void gather_halves(const __half* halves, const float* terms, const std::uint32_t* numbers, std::size_t count,
                   std::size_t padded, std::uint32_t stride, __half* out, float* out_terms, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
