// Copies of some rows, or of some columns, of a table of vectors; all on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda::rows
{

// out[i] = rows[numbers[i]]. Throws CudaError.
void gather_rows(const float* rows, std::size_t dimensions, const std::uint32_t* numbers, std::size_t count, float* out,
                 cudaStream_t stream);

// out [count][width] = columns [first, first + width) of rows [count][dimensions]. Throws CudaError.
void copy_columns(const float* rows, std::size_t count, std::size_t dimensions, std::size_t first, std::size_t width,
                  float* out, cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
