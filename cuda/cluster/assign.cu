#include "cluster/assign.h"

#include <algorithm>

#include "cluster/assign_kernels.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

// The work of one launch.
struct LaunchSize {
    std::size_t rows;
    int tiles;  // of centroids
};

// A launch multiplies for about 0.08 ms, or up to 0.25 ms where a wave takes longer than that. A kernel of a search
// waits for one launch at most, because a block keeps its multiprocessor to the end. A launch takes whole waves of row
// tiles with all centroids where 0.25 ms are enough for a wave, else a wave with a part of the centroids. Kernels that
// take all centroids get less than a wave instead.
LaunchSize launch_size(const Context& context, std::size_t chunks, int tiles, int passes, bool fast)
{
    const double products = fast ? 6e10 : 6e9;
    const double usual_products = 0.3 * products;
    const double row_by_tile = static_cast<double>(chunks * chunk_width * centroid_tile) * passes;
    const std::size_t wave = static_cast<std::size_t>(context.multiprocessors()) * row_tile;
    const auto of = [&](double cost, std::size_t unit) {
        return static_cast<std::size_t>(products / (cost * static_cast<double>(unit))) * unit;
    };
    const double wave_products = row_by_tile * tiles * static_cast<double>(wave);
    if (wave_products <= products) {
        const auto waves = static_cast<std::size_t>(usual_products / wave_products);
        return {std::max<std::size_t>(waves, 1) * wave, tiles};
    }
    const bool exact = passes > 1;
    const bool in_parts = !fast || takes_parts(exact, rows_stay(chunks, exact));
    const std::size_t rows =
        std::clamp<std::size_t>(of(row_by_tile * (in_parts ? 1 : tiles), row_tile), row_tile, wave);
    if (!in_parts) return {rows, tiles};
    const std::size_t some = of(row_by_tile * static_cast<double>(rows), 1);
    return {rows, static_cast<int>(std::clamp<std::size_t>(some, 1, static_cast<std::size_t>(tiles)))};
}

bool warpgroup_path(const Context& context, MatrixPath path)
{
    return path == MatrixPath::best && context.has_warp_group_matrix();
}

// Launches `task` for all tiles of centroids, `size.tiles` at a time.
void run_tiles(const Context& context, AssignTask task, const LaunchSize& size, bool exact, MatrixPath path,
               cudaStream_t stream)
{
    const int all = task.centroids.tile_count;
    if (size.tiles >= all) task.running = nullptr;
    for (task.first_tile = 0; task.first_tile < all; task.first_tile = task.end_tile) {
        task.end_tile = std::min(task.first_tile + size.tiles, all);
        if (warpgroup_path(context, path)) {
            assign_warpgroup(task, exact, context.multiprocessors(), stream);
        } else {
            assign_portable(task, exact, stream);
        }
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
    // The packed copy of a step's rows takes at most 512 MiB.
    const std::size_t most = std::max<std::size_t>(row_tile, (std::size_t{1} << 27) / (chunks * chunk_width));
    PackedCentroids packed(context, clusters, dimensions, parts, stream);
    packed.pack(centroids, frame, dot, stream);
    const LaunchSize size =
        launch_size(context, chunks, packed.view().tile_count, passes, warpgroup_path(context, path));
    const std::size_t step =
        std::min({size.rows, most / row_tile * row_tile, (count + row_tile - 1) / row_tile * row_tile});
    PackedRows packed_rows(context, step, dimensions, parts, stream);
    DeviceArray<uint2> pairs(context.pool(), step, "cluster workspace", stream);
    DeviceArray<TwoBest> running(context.pool(), size.tiles < packed.view().tile_count ? step : 0, "cluster workspace",
                                 stream);
    for (std::size_t first = 0; first < count; first += step) {
        if (cancel != nullptr) cancel->check();
        const std::size_t here = std::min(step, count - first);
        const float* piece = rows + first * dimensions;
        packed_rows.pack(piece, here, frame, stream);
        run_tiles(context,
                  {packed_rows.view(0, here), packed.view(), chunks, clusters, 0, 0, running.data(), nullptr, nullptr,
                   pairs.data()},
                  size, true, path, stream);
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
    const PackedCentroidsView packed = packed_centroids_.view();
    const LaunchSize size = launch_size(context_, chunks, packed.tile_count, 1, warpgroup_path(context_, path_));
    DeviceArray<TwoBest> running(context_.pool(), size.tiles < packed.tile_count ? std::min(size.rows, count_) : 0,
                                 "cluster workspace", stream);
    for (std::size_t first = 0; first < count_; first += size.rows) {
        run_tiles(context_,
                  {packed_rows_.view(first, std::min(size.rows, count_ - first)), packed, chunks, clusters_, 0, 0,
                   running.data(), labels + first, changed, nullptr},
                  size, false, path_, stream);
    }
}

}  // namespace pgwarp::cuda
