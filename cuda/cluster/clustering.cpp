#include "cluster/clustering.h"

#include <new>

#include "cluster/kmeans.h"
#include "cluster/staging.h"
#include "device/context.h"
#include "device/wait.h"
#include "methods/arrays.h"
#include "methods/clustering/clustering.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda::clustering
{

namespace
{

class ClusteringBuilder : public Builder
{
public:
    ClusteringBuilder(Context& context, const IndexShape& shape, const ParameterList& options)
        : context_(context), shape_(shape), asked_(options), training_(clustering_options(options))
    {
    }

    // Where the device's memory is too small the CPU trains.
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        try {
            run_on_device(rows, progress, pool);
        } catch (const std::bad_alloc&) {
            host_ = make_clustering_builder(shape_, asked_);
            host_->run(rows, progress, pool);
        }
    }
    std::vector<ArrayShape> arrays() const override
    {
        return {make_array_shape(array_clusters, ArrayType::f32, training_.clusters, shape_.dimensions)};
    }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (host_) return host_->read(array, offset, out);
        read_piece(std::span<const float>(centroids_), offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return asked_; }

private:
    void run_on_device(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
    {
        const std::size_t dimensions = shape_.dimensions;
        const DevicePatience patience(build_patience);
        const Context::Lease lease = context_.lease(Priority::build);
        Staging staging(lease);
        DeviceArray<float> vectors(context_.pool(), rows.vectors().size(), "clustering", lease);
        staging.upload(rows.vectors().data(), vectors.bytes(), vectors.data(), pool, progress.cancel);
        training_.cancel = progress.cancel;
        training_.progress = [&progress](std::size_t done, std::size_t total) {
            progress.report("training lists", done, total);
        };
        centroids_.resize(training_.clusters * dimensions);
        DeviceArray<float> centroids(context_.pool(), centroids_.size(), "clustering", lease);
        train_kmeans(context_, vectors.data(), rows.size(), dimensions, training_, centroids.data(), lease);
        staging.download(centroids.data(), centroids.bytes(), centroids_.data(), pool, progress.cancel);
    }

    Context& context_;
    IndexShape shape_;
    ParameterList asked_;
    KMeansOptions training_;
    std::vector<float> centroids_;
    std::unique_ptr<Builder> host_;
};

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<ClusteringBuilder>(*contexts().front(), shape, options);
}

}  // namespace

MethodDescriptor method()
{
    return {.method = clustering_method,
            .name = "clustering",
            .make_builder = make_builder,
            .make_searcher = make_clustering_searcher};
}

}  // namespace pgwarp::cuda::clustering
