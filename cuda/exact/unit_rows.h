// Scaling of the rows of a cosine index to unit length, in place, while the index is loaded.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pgwarp::cuda
{

// Divides each row of device memory [count][dimensions] by its canonical norm, which must not be 0. The floats have the
// bits of the CPU's. Asynchronous. Throws CudaError.
void make_unit_rows(float* rows, std::uint32_t count, std::uint32_t dimensions, cudaStream_t stream);

}  // namespace pgwarp::cuda
