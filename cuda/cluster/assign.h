// The nearest of K centroids for each of N rows: the argmin is fused behind a matrix tile, no distance is written.
//
// training: one product in binary16 with fp32 accumulation; ties and near-ties (about 2^-11 of the magnitudes in the
// frame) may go either way, the same way every time. exact: three products of split values (22 bits) propose the best
// two, fp32 decides; ties to the lower index. At most 16 dimensions always go through fp32 arithmetic.
// Same input, same device: same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/packing.h"
#include "device/context.h"
#include "numeric/metric.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda
{

// best: the fastest path of the device. portable: the path of devices without warp-group matrix instructions, for
// tests.
enum class MatrixPath { best, portable };

// labels[i] = index of the centroid nearest (l2) or of largest inner product (others) to row i.
// rows: device [count][dimensions]; centroids: device [clusters][dimensions], clusters >= 1; labels: device [count].
// Works in chunks; checks `cancel` (may be null) between them. Returns before the device is done.
void assign_to_centroids(Context& context, Metric metric, const float* rows, std::size_t count, std::size_t dimensions,
                         const float* centroids, std::size_t clusters, std::uint32_t* labels, const CancelToken* cancel,
                         cudaStream_t stream, MatrixPath path = MatrixPath::best);

// Assigns the same rows again and again while centroids move, so it packs the rows once. `rows` and the context must
// outlive it.
class TrainingAssigner
{
public:
    // The frame comes from `centroids`, device [clusters][dimensions], as they are now.
    TrainingAssigner(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                     const float* centroids, std::size_t clusters, cudaStream_t stream,
                     MatrixPath path = MatrixPath::best);

    // The squared distance decides. labels: device [count], read and written; `changed` (device) grows by the number of
    // labels that change.
    void assign(const float* centroids, std::uint32_t* labels, std::uint32_t* changed, cudaStream_t stream);
    const Frame& frame() const { return frame_; }

private:
    Context& context_;
    const float* rows_;
    std::size_t count_;
    std::size_t dimensions_;
    std::size_t clusters_;
    MatrixPath path_;
    Frame frame_;
    PackedRows packed_rows_;
    PackedCentroids packed_centroids_;
    DeviceArray<unsigned long long> narrow_best_;
};

}  // namespace pgwarp::cuda
