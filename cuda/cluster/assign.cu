#include "cluster/assign.h"

#include <algorithm>

#include "cluster/assign_kernels.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

// Rows of one launch: the products of about a millisecond, whole waves of tiles.
std::size_t rows_per_launch(const Context& context, std::size_t chunks, std::size_t clusters, int passes, bool fast)
{
    const double products = fast ? 2.5e11 : 2.5e10;
    const double width = static_cast<double>(chunks) * chunk_width * passes;
    const double rows = products / (width * static_cast<double>(std::max<std::size_t>(clusters, centroid_tile)));
    const std::size_t wave = static_cast<std::size_t>(context.multiprocessors()) * row_tile;
    return std::max<std::size_t>(1, static_cast<std::size_t>(rows / static_cast<double>(wave))) * wave;
}

bool warpgroup_path(const Context& context, MatrixPath path)
{
    return path == MatrixPath::best && context.has_warp_group_matrix();
}

void run_tiles(const Context& context, const AssignTask& task, bool exact, MatrixPath path, cudaStream_t stream)
{
    if (warpgroup_path(context, path)) {
        assign_warpgroup(task, exact, context.multiprocessors(), stream);
    } else {
        assign_portable(task, exact, stream);
    }
}

}  // namespace

void assign_to_centroids(Context& context, Metric metric, const float* rows, std::size_t count, std::size_t dimensions,
                         const float* centroids, std::size_t clusters, std::uint32_t* labels, const CancelToken* cancel,
                         cudaStream_t stream, MatrixPath path)
{
    if (count == 0 || clusters == 0) return;
    const bool dot = metric != Metric::l2;
    Frame frame(context, dimensions, stream);
    frame.fit(centroids, clusters, !dot, stream);
    if (dimensions <= narrow_dimensions) {
        DeviceArray<unsigned long long> best(context.pool(), count, "cluster workspace", stream);
        assign_narrow({rows, count, dimensions, centroids, clusters, frame.origin(), frame.scale(), dot, best.data(),
                       labels, nullptr},
                      stream);
        return;
    }
    constexpr int parts = 2;
    constexpr int passes = 3;
    const std::size_t chunks = chunks_of(dimensions);
    // The packed copy of the rows in work stays small.
    const std::size_t most = std::max<std::size_t>(row_tile, (std::size_t{1} << 27) / (chunks * chunk_width));
    const std::size_t step =
        std::min({rows_per_launch(context, chunks, clusters, passes, warpgroup_path(context, path)),
                  most / row_tile * row_tile, (count + row_tile - 1) / row_tile * row_tile});
    PackedCentroids packed(context, clusters, dimensions, parts, stream);
    packed.pack(centroids, frame, dot, stream);
    PackedRows packed_rows(context, step, dimensions, parts, stream);
    DeviceArray<uint2> pairs(context.pool(), step, "cluster workspace", stream);
    for (std::size_t first = 0; first < count; first += step) {
        if (cancel != nullptr) cancel->check();
        const std::size_t here = std::min(step, count - first);
        const float* piece = rows + first * dimensions;
        packed_rows.pack(piece, here, frame, stream);
        run_tiles(context, {packed_rows.view(0, here), packed.view(), chunks, clusters, nullptr, nullptr, pairs.data()},
                  true, path, stream);
        decide_pairs(piece, here, dimensions, centroids, dot, frame.scale(), pairs.data(), labels + first, stream);
    }
}

TrainingAssigner::TrainingAssigner(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                                   const float* centroids, std::size_t clusters, cudaStream_t stream, MatrixPath path)
    : context_(context),
      rows_(rows),
      count_(count),
      dimensions_(dimensions),
      clusters_(clusters),
      path_(path),
      frame_(context, dimensions, stream),
      packed_rows_(context, dimensions <= narrow_dimensions ? 0 : count, dimensions, 1, stream),
      packed_centroids_(context, dimensions <= narrow_dimensions ? 0 : clusters, dimensions, 1, stream),
      narrow_best_(context.pool(), dimensions <= narrow_dimensions ? count : 0, "cluster workspace", stream)
{
    frame_.fit(centroids, clusters, true, stream);
    if (dimensions > narrow_dimensions) packed_rows_.pack(rows, count, frame_, stream);
}

void TrainingAssigner::assign(const float* centroids, std::uint32_t* labels, std::uint32_t* changed,
                              cudaStream_t stream)
{
    if (dimensions_ <= narrow_dimensions) {
        assign_narrow({rows_, count_, dimensions_, centroids, clusters_, frame_.origin(), frame_.scale(), false,
                       narrow_best_.data(), labels, changed},
                      stream);
        return;
    }
    packed_centroids_.pack(centroids, frame_, false, stream);
    const std::size_t chunks = chunks_of(dimensions_);
    const std::size_t step = rows_per_launch(context_, chunks, clusters_, 1, warpgroup_path(context_, path_));
    for (std::size_t first = 0; first < count_; first += step) {
        run_tiles(context_,
                  {packed_rows_.view(first, std::min(step, count_ - first)), packed_centroids_.view(), chunks,
                   clusters_, labels + first, changed, nullptr},
                  false, path_, stream);
    }
}

}  // namespace pgwarp::cuda
