// The clustering method, which trains centroids for kmeans(): found groups, repeatability, refused options.
#include <gtest/gtest.h>

#include <algorithm>

#include "methods/clustering/clustering.h"

namespace pgwarp
{
namespace
{

ParameterList options_of(std::int64_t clusters, std::int64_t iterations, std::int64_t seed)
{
    ParameterList options;
    options.set("clusters", clusters);
    options.set("iterations", iterations);
    options.set("seed", seed);
    return options;
}

IndexShape shape_of(std::uint32_t dimensions)
{
    IndexShape shape{};
    shape.method = clustering_method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = dimensions;
    return shape;
}

// The centroids of groups of rows around (10 i, -10 i).
std::vector<float> train(std::size_t groups, std::int64_t clusters, std::int64_t seed)
{
    const MethodFactory* method = find_method(clustering_method);
    const auto builder = method->make_builder(shape_of(2), options_of(clusters, 10, seed));
    RowBuffer rows(2);
    for (std::uint32_t i = 0; i < groups * 20; ++i) {
        const Tid tid{i, 1, 0};
        const float at = 10.0F * static_cast<float>(i % groups);
        const float vector[2] = {at + 0.1F * static_cast<float>(i / groups % 5), -at};
        rows.append({&tid, 1}, vector);
    }
    rows.sort_by_tid();
    ThreadPool pool(2);
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    const std::vector<ArrayShape> arrays = builder->arrays();
    EXPECT_EQ(arrays.size(), 1U);
    EXPECT_STREQ(arrays[0].name, array_clusters);
    std::vector<float> centroids(arrays[0].rows * arrays[0].width);
    builder->read(array_clusters, 0, std::as_writable_bytes(std::span(centroids)));
    return centroids;
}

TEST(Clustering, FindsGroupsAndRepeatsItself)
{
    std::vector<float> centroids = train(1, 1, 5);
    EXPECT_NEAR(centroids[0], 0.2F, 1e-4);
    for (const std::int64_t seed : {1, 2}) {
        const std::vector<float> first = train(8, 4, seed);
        EXPECT_EQ(first.size(), 8U);
        EXPECT_EQ(first, train(8, 4, seed));
        for (const float value : first) EXPECT_LE(std::abs(value), 71.0F);
    }
}

TEST(Clustering, RefusesWhatMakesNoSense)
{
    EXPECT_THROW(clustering_options(options_of(0, 10, 1)), BadRequest);
    EXPECT_THROW(clustering_options(options_of(65537, 10, 1)), BadRequest);
    EXPECT_THROW(clustering_options(options_of(4, 0, 1)), BadRequest);
    EXPECT_THROW(clustering_options(options_of(4, 1001, 1)), BadRequest);
    EXPECT_THROW(clustering_options({}), BadRequest);
    EXPECT_THROW(make_clustering_searcher(shape_of(2), options_of(4, 10, 1), {}), BadRequest);
}

}  // namespace
}  // namespace pgwarp
