// The random rotation of src/numeric/hadamard.h on the device, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/product_quantizer.h"
#include "device/context.h"

namespace pgwarp::cuda
{

// out[i] = the rotated (rows[i] less its centroid). All device: signs [HadamardPlan::rounds][dimensions], rows and out
// [count][dimensions]; out may be rows. At most 16,000 dimensions: a row is held in shared memory.
void hadamard_rotate_rows(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base,
                          const std::uint8_t* signs, float* out, cudaStream_t stream);

}  // namespace pgwarp::cuda
