// How a vector is split into parts, for host and device.
#pragma once

#include <cuda_runtime_api.h>

#include "numeric/product_quantizer.h"

namespace pgwarp::cuda
{

struct PartShape {
    int dimensions;
    int parts;

    explicit PartShape(const ProductQuantizer& shape)
        : dimensions(static_cast<int>(shape.dimensions())), parts(static_cast<int>(shape.subquantizers()))
    {
    }
    // First dimension of a part: the first parts are one wider when the width does not divide evenly.
    __host__ __device__ int begin(int part) const
    {
        const int wider = dimensions % parts;
        return part * (dimensions / parts) + (part < wider ? part : wider);
    }
};

// *scale = a power of two that brings the largest magnitude of `count` values to the order of one (1 for zeros).
void magnitude_scale(const float* values, std::size_t count, float* scale, cudaStream_t stream);

}  // namespace pgwarp::cuda
