// The build of a clustering: k-means over the rows.
#include <new>

#include "methods/arrays.h"
#include "methods/clustering/clustering.h"

namespace pgwarp
{

namespace
{

class ClusteringBuilder : public Builder
{
public:
    ClusteringBuilder(const IndexShape& shape, const ParameterList& options, TrainClusters train)
        : dimensions_(shape.dimensions),
          asked_(options),
          training_(clustering_options(options)),
          train_(std::move(train))
    {
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        training_.cancel = progress.cancel;
        training_.progress = [&progress](std::size_t done, std::size_t total) {
            progress.report("training lists", done, total);
        };
        try {
            centroids_ = train_(rows.vectors(), dimensions_, training_, pool);
        } catch (const std::bad_alloc&) {
            centroids_ = train_kmeans(rows.vectors(), dimensions_, training_, pool);
        }
    }
    std::vector<ArrayShape> arrays() const override
    {
        return {make_array_shape(array_clusters, ArrayType::f32, training_.clusters, dimensions_)};
    }
    void read(const std::string&, std::uint64_t offset, std::span<std::byte> out) const override
    {
        read_piece(std::span<const float>(centroids_), offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return asked_; }

private:
    std::size_t dimensions_;
    ParameterList asked_;
    KMeansOptions training_;
    TrainClusters train_;
    std::vector<float> centroids_;
};

}  // namespace

KMeansOptions clustering_options(const ParameterList& options)
{
    const std::int64_t clusters = options.get("clusters", 0);
    const std::int64_t iterations = options.get("iterations", 0);
    if (clusters < 1 || clusters > most_clusters) throw BadRequest("clusters must be between 1 and 65536");
    if (iterations < 1 || iterations > most_cluster_iterations)
        throw BadRequest("iterations must be between 1 and 1000");
    KMeansOptions training;
    training.clusters = static_cast<std::size_t>(clusters);
    training.iterations = static_cast<std::size_t>(iterations);
    training.seed = static_cast<std::uint64_t>(options.get("seed", 1));
    return training;
}

std::unique_ptr<Builder> make_clustering_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_clustering_builder(shape, options, train_kmeans);
}

std::unique_ptr<Builder> make_clustering_builder(const IndexShape& shape, const ParameterList& options,
                                                 TrainClusters train)
{
    return std::make_unique<ClusteringBuilder>(shape, options, std::move(train));
}

std::unique_ptr<Searcher> make_clustering_searcher(const IndexShape&, const ParameterList&, std::span<const ArrayShape>)
{
    throw BadRequest("a clustering cannot be searched");
}

const MethodFactory& clustering_factory()
{
    static const MethodFactory factory{.method = clustering_method,
                                       .make_builder = make_clustering_builder,
                                       .make_searcher = make_clustering_searcher};
    return factory;
}

}  // namespace pgwarp
