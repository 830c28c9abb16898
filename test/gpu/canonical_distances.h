// Canonical distances of lists of (query, row) pairs. Source: src/numeric/canonical.cpp, bit for bit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"

namespace pgwarp::cuda
{

struct QueryRow {
    std::uint32_t query;
    std::uint32_t row;
};

// out[i] = canonical_distance(metric, queries[pairs[i].query], rows[pairs[i].row]). All pointers are on the device,
// matrices row-major [][dimensions]. Asynchronous. Throws CudaError.
void canonical_distances(Metric metric, const float* queries, const float* rows, std::uint32_t dimensions,
                         const QueryRow* pairs, std::size_t count, double* out, cudaStream_t stream);

}  // namespace pgwarp::cuda
