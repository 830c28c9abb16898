// k-means on the device, as src/numeric/kmeans.h has it on the CPU: the same start, the same balancing, the same end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/assign.h"
#include "device/context.h"
#include "numeric/kmeans.h"

namespace pgwarp::cuda
{

// rows: device [count][dimensions], count < 2^32; centroids: device [clusters][dimensions], written. When count <=
// clusters the surplus centroids repeat rows; without rows they are zero. progress and cancel are called between
// iterations, on the caller's thread. Same input, same device: same bytes. Returns how many iterations ran, when the
// device is done.
std::size_t train_kmeans(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                         const KMeansOptions& options, float* centroids, cudaStream_t stream,
                         MatrixPath path = MatrixPath::best);

}  // namespace pgwarp::cuda
