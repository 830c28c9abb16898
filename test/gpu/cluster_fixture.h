// Functions for the tests of clustering and builds: a device, random rows, and measures in float64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/error.h"
#include "numeric/metric.h"
#include "numeric/product_quantizer.h"
#include "shared_context.h"

namespace pgwarp::cuda
{

inline Context& context()
{
    return test::shared_context();
}

inline std::vector<float> normal_values(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

// Rows around `blobs` centres, so that they have clusters.
inline std::vector<float> blob_values(std::size_t count, std::size_t dimensions, std::size_t blobs, unsigned seed)
{
    const std::vector<float> centres = normal_values(blobs * dimensions, seed + 1000);
    std::vector<float> values = normal_values(count * dimensions, seed);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < dimensions; ++d)
            values[i * dimensions + d] = 0.5F * values[i * dimensions + d] + centres[i * 7919 % blobs * dimensions + d];
    }
    return values;
}

template <class T>
DeviceArray<T> to_device(const std::vector<T>& values, cudaStream_t stream)
{
    DeviceArray<T> array(context().pool(), values.size(), "test", stream);
    if (!values.empty())
        check(cudaMemcpyAsync(array.data(), values.data(), array.bytes(), cudaMemcpyHostToDevice, stream), "upload");
    return array;
}

template <class T>
std::vector<T> to_host(const DeviceArray<T>& array, cudaStream_t stream)
{
    std::vector<T> values(array.size());
    if (!values.empty())
        check(cudaMemcpyAsync(values.data(), array.data(), array.bytes(), cudaMemcpyDeviceToHost, stream), "download");
    check(cudaStreamSynchronize(stream), "wait");
    return values;
}

inline double distance(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    return metric == Metric::l2 ? canonical_l2_squared(a, b, dimensions) : -canonical_dot(a, b, dimensions);
}

// Expects that the distance of each label is the best one up to `slack` of it, for the rounding of fp32.
inline void expect_nearest(Metric metric, const std::vector<float>& rows, std::size_t dimensions,
                           const std::vector<float>& centroids, const std::vector<std::uint32_t>& labels, double slack)
{
    const std::size_t count = rows.size() / dimensions;
    const std::size_t clusters = centroids.size() / dimensions;
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows.data() + i * dimensions;
        ASSERT_LT(labels[i], clusters);
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < clusters; ++c)
            best = std::min(best, distance(metric, row, centroids.data() + c * dimensions, dimensions));
        const double got = distance(metric, row, centroids.data() + labels[i] * dimensions, dimensions);
        const double scale = metric == Metric::l2 ? best : std::fabs(best);
        ASSERT_LE(got, best + slack * scale) << "row " << i << " of " << count << ", d " << dimensions << ", K "
                                             << clusters << ", metric " << static_cast<int>(metric);
    }
}

// The squared error of the decoded rows.
inline double loss(const ProductQuantizer& quantizer, const std::vector<std::uint8_t>& codes,
                   const std::vector<float>& rows)
{
    const std::size_t dimensions = quantizer.dimensions();
    std::vector<float> decoded(dimensions);
    double sum = 0;
    for (std::size_t i = 0; i * dimensions < rows.size(); ++i) {
        quantizer.decode(codes.data() + i * quantizer.subquantizers(), decoded.data());
        sum += canonical_l2_squared(decoded.data(), rows.data() + i * dimensions, dimensions);
    }
    return sum;
}

struct Shape {
    std::size_t rows;
    std::size_t dimensions;
    std::size_t clusters;
};

}  // namespace pgwarp::cuda
