#include "cluster/clustering.h"

#include "cluster/kmeans.h"
#include "cluster/staging.h"
#include "device/context.h"
#include "device/wait.h"
#include "methods/clustering/clustering.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda
{

namespace
{

std::vector<float> train_on_device(Context& context, std::span<const float> rows, std::size_t dimensions,
                                   const KMeansOptions& training, ThreadPool& pool)
{
    const DevicePatience patience(build_patience);
    const Context::Lease lease = context.lease(Priority::build);
    Staging staging(lease);
    DeviceArray<float> vectors(context.pool(), rows.size(), "clustering", lease);
    staging.upload(rows.data(), vectors.bytes(), vectors.data(), pool, training.cancel);
    std::vector<float> centroids(training.clusters * dimensions);
    DeviceArray<float> trained(context.pool(), centroids.size(), "clustering", lease);
    train_kmeans(context, vectors.data(), rows.size() / dimensions, dimensions, training, trained.data(), lease);
    staging.download(trained.data(), trained.bytes(), centroids.data(), pool, training.cancel);
    return centroids;
}

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    Context& context = *contexts().front();
    return make_clustering_builder(
        shape, options,
        [&context](std::span<const float> rows, std::size_t dimensions, const KMeansOptions& training,
                   ThreadPool& pool) { return train_on_device(context, rows, dimensions, training, pool); });
}

}  // namespace

const MethodFactory* clustering_factory()
{
    static const MethodFactory factory{clustering_method, make_builder, make_clustering_searcher};
    return &factory;
}

}  // namespace pgwarp::cuda
