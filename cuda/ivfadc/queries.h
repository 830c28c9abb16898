// Queries as the scans want them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Where the prepared forms of a batch go; shapes as in QueryView.
struct PreparedQueries {
    float* moved;
    __half* halves;
    float* multipliers;
    double* norms;
};

// original [count][dimensions] on the device. For the scanned rows ...
void prepare_for_rows(const MirrorView& mirror, const float* original, std::uint32_t count, const PreparedQueries& out,
                      cudaStream_t stream);
// ... and, in one launch, for the centroids too (their norms are not written).
void prepare_queries(const MirrorView& mirror, const float* original, std::uint32_t count,
                     const PreparedQueries& for_rows, const PreparedQueries& for_centroids, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
