// Preparation of queries for scans: moved into the space of the rows and rounded to halves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/carver.h"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// The prepared forms of a batch; shapes as in QueryView.
struct PreparedQueries {
    float* moved;
    __half* halves;
    float* multipliers;
    double* norms;  // may be null
};

// Memory for `count` queries.
inline PreparedQueries take_prepared_queries(Carver& memory, std::size_t count, std::size_t dimensions, bool norms)
{
    const std::size_t stride = half_stride(static_cast<std::uint32_t>(dimensions));
    return {memory.take<float>(count * dimensions), memory.take<__half>(count * stride), memory.take<float>(count),
            norms ? memory.take<double>(count) : nullptr};
}

// The map from queries to the space of the rows: identity, centring and scaling, or a rotation.
struct QuerySpace {
    const float* mean = nullptr;          // where the space is centred
    float scale = 1;                      // where the space is centred
    const float* rotation = nullptr;      // [dimensions][dimensions]
    const std::uint8_t* signs = nullptr;  // a rotation by numeric/hadamard.h
    float factor = 1;                     // of the multipliers: 2 for L2, else 1, over the scale of the rows
};

// The space of rows as halves, which are centred for L2.
QuerySpace space_of(Metric metric, const HalfView& half);

// Prepares queries original [count][dimensions], on the device. Writes norms where out.norms is not null.
void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, cudaStream_t stream);
// Prepares for two spaces in one launch. The second space must not have signs.
void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, const QuerySpace& second, const PreparedQueries& second_out,
                     cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
