// k-means as a build: the device's centroids against the CPU's.
#include <gtest/gtest.h>

#include <cmath>

#include "cluster/clustering.h"
#include "device/context.h"
#include "methods/clustering/clustering.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t dimensions = 24;
constexpr std::size_t clusters = 37;

// Rows near a few points.
void fill(RowBuffer& rows, std::size_t count)
{
    for (std::uint32_t i = 0; i < count; ++i) {
        const Tid tid{i, 1, 0};
        float vector[dimensions];
        for (std::size_t d = 0; d < dimensions; ++d) {
            const auto group = static_cast<double>(i % 50);
            vector[d] = static_cast<float>(10 * std::sin(group * (1.3 + static_cast<double>(d))) +
                                           0.1 * std::cos(static_cast<double>(i * (d + 1))));
        }
        rows.append({&tid, 1}, vector);
    }
    rows.sort_by_tid();
}

// The mean squared distance to the nearest of the centroids that a method trains.
double cost_of(const MethodFactory& method)
{
    IndexShape shape{};
    shape.method = clustering_method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = dimensions;
    ParameterList options;
    options.set("clusters", clusters);
    options.set("iterations", 20);
    options.set("seed", 7);
    RowBuffer rows(dimensions);
    fill(rows, 5000);
    ThreadPool pool(2);
    const auto builder = method.make_builder(shape, options);
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::vector<float> centroids(clusters * dimensions);
    EXPECT_EQ(builder->arrays().at(0).bytes(), centroids.size() * sizeof(float));
    builder->read(array_clusters, 0, std::as_writable_bytes(std::span(centroids)));
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        double least = INFINITY;
        for (std::size_t c = 0; c < clusters; ++c) {
            least = std::min(least, canonical_l2_squared(rows.vectors().data() + i * dimensions,
                                                         centroids.data() + c * dimensions, dimensions));
        }
        sum += least;
    }
    return sum / static_cast<double>(rows.size());
}

TEST(GpuClustering, IsAsGoodAsTheCpu)
{
    cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0));
    const double device = cost_of(*cuda::clustering_factory());
    const double host = cost_of(*find_method(clustering_method));
    EXPECT_TRUE(std::isfinite(device));
    EXPECT_NEAR(device, host, 0.05 * host);
    cuda::contexts().clear();
}

}  // namespace
}  // namespace pgwarp::test
