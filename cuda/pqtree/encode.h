// The kernels of a build: leaves of the second level, and line codes. All are asynchronous and throw
// CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

// The rows [width] of each centroid of the first level: members [begin[c], begin[c + 1]).
struct CentroidRows {
    const float* rows = nullptr;             // [..][width]
    const std::uint32_t* members = nullptr;  // row numbers
    const std::uint32_t* begin = nullptr;    // [k1 + 1]
    std::size_t width = 0;
    std::uint32_t k1 = 0;
    std::uint32_t most_rows = 0;  // of a centroid
};

// Starts leaves [k1][k2][width] at rows of their centroids, evenly spaced among its members; a centroid without rows
// has leaves at its own place, centroids [k1][width].
void start_leaves(const CentroidRows& groups, const float* centroids, std::uint32_t k2, float* leaves,
                  cudaStream_t stream);
// One iteration of k-means within each centroid. Sums go over members in order, so the same rows give the same bytes. A
// leaf without rows stays. labels: scratch [members].
void improve_leaves(const CentroidRows& groups, std::uint32_t k2, std::uint32_t* labels, float* leaves,
                    cudaStream_t stream);

// The code of row i begins at codes + i * stride: the leaves of the parts as 16 bits, lines, places
// (methods/pqtree/pqtree.h).
struct CodeOutput {
    std::uint8_t* codes = nullptr;
    std::size_t stride = 0;
};

// Writes the leaves [count] of a part.
void write_leaves(const std::uint32_t* leaves, std::size_t count, std::uint32_t part, const CodeOutput& out,
                  cudaStream_t stream);

// Writes the lines and places of rows [count][dimensions]: of each line part the line with the smallest error, ties to
// the lower number. tree: level1, spans and constants (lengths of L2) are valid. shared_bytes: the most of a block.
void encode_lines(const TreeView& tree, const float* rows, std::size_t count, const CodeOutput& out,
                  std::size_t shared_bytes, cudaStream_t stream);

}  // namespace pgwarp::cuda::pqtree
