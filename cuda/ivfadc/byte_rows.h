// Rows as residuals in bytes (codes = int8, src/methods/rows/byte_lists.h): made on the device, and laid out for
// scans.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Of rows [count][dimensions] in lists[count] of centroids [..][dimensions]: codes [count][dimensions] and scales
// [count], with the bits of encode_bytes() on the CPU.
void encode_byte_rows(const float* rows, std::size_t count, std::uint32_t dimensions, const std::uint32_t* lists,
                      const float* centroids, std::uint8_t* codes, float* scales, cudaStream_t stream);

// Bytes [offset, offset + bytes) of stored codes [rows][dimensions] go to where the rows' positions are.
void scatter_bytes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);

// terms[i] = |r|^2 + 2 (c - m).r for the residual r of a position, its list's centroid c and the centre mean m, which
// queries are relative to; 0 for products, infinite in padding. The mirror's lists, centroids, centre
// and bytes hold.
void byte_terms(const MirrorView& mirror, float* terms, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
