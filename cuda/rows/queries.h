// Queries as scans want them: moved into the space of the rows and rounded to halves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/carver.h"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// Where the prepared forms of a batch go; shapes as in QueryView.
struct PreparedQueries {
    float* moved;
    __half* halves;
    float* multipliers;
    double* norms;  // may be none
};

// Room for `count` queries.
inline PreparedQueries take_prepared_queries(Carver& memory, std::size_t count, std::size_t dimensions, bool norms)
{
    const std::size_t stride = half_stride(static_cast<std::uint32_t>(dimensions));
    return {memory.take<float>(count * dimensions), memory.take<__half>(count * stride), memory.take<float>(count),
            norms ? memory.take<double>(count) : nullptr};
}

// How a query comes into the space of rows: as it is, relative to a mean and scaled, or rotated.
struct QuerySpace {
    const float* mean = nullptr;          // of those that are centred
    float scale = 1;                      // of those that are centred
    const float* rotation = nullptr;      // [dimensions][dimensions]
    const std::uint8_t* signs = nullptr;  // a rotation by numeric/hadamard.h
    float factor = 1;                     // of the multipliers: 2 for L2 or 1, over the scale of the rows
};

// The space of rows as halves, which are centred for L2.
QuerySpace space_of(Metric metric, const HalfView& half);

// original [count][dimensions] on the device. The norms are written where `out` has room for them.
void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, cudaStream_t stream);
// For two spaces in one launch; the second has no signs.
void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, const QuerySpace& second, const PreparedQueries& second_out,
                     cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
