// Rows of any length that an index by cosine keeps: made unit vectors where they lie, when it is loaded.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pgwarp::cuda
{

// Divides each row of device memory [count][dimensions] by its canonical norm, which isn't 0: the floats that the CPU
// makes of it. Asynchronous.
void make_unit_rows(float* rows, std::uint32_t count, std::uint32_t dimensions, cudaStream_t stream);

}  // namespace pgwarp::cuda
