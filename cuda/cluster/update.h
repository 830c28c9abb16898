// The centroid update of k-means: rows are sorted by label and summed segment by segment, in row order: the same bytes
// every time (Faiss paper, section 5.4, trains by the same two steps).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/packing.h"
#include "device/context.h"

namespace pgwarp::cuda
{

class CentroidUpdate
{
public:
    CentroidUpdate(Context& context, std::size_t count, std::size_t dimensions, std::size_t clusters,
                   cudaStream_t stream);

    // Sorts rows by cluster, in row order within one.
    void group(const std::uint32_t* labels, cudaStream_t stream);
    // Centroids become the means of their rows; those of empty clusters stay. Nothing happens where *settled != 0.
    void average(const float* rows, const FrameView& frame, float* centroids, const std::uint32_t* settled,
                 cudaStream_t stream);
    // Moves empty clusters, with `balanced` small ones too, to the largest; *moved (device) becomes their number. The
    // rules are the CPU's (numeric/kmeans_rules.h).
    void fill_small(const float* rows, bool balanced, std::uint64_t seed, float* centroids,
                    const std::uint32_t* settled, std::uint32_t* moved, cudaStream_t stream);

private:
    void sort(const std::uint32_t* keys, std::uint32_t* sorted_keys, const std::uint32_t* values,
              std::uint32_t* sorted_values, std::size_t count, int bits, cudaStream_t stream);

    std::size_t count_;
    std::size_t dimensions_;
    std::size_t clusters_;
    DeviceArray<std::uint32_t> row_numbers_;
    DeviceArray<std::uint32_t> sorted_labels_;
    DeviceArray<std::uint32_t> members_;
    DeviceArray<std::uint32_t> begin_;  // [clusters + 1]
    DeviceArray<float> partial_;
    DeviceArray<std::uint32_t> size_keys_;  // [clusters] each
    DeviceArray<std::uint32_t> sorted_keys_;
    DeviceArray<std::uint32_t> cluster_numbers_;
    DeviceArray<std::uint32_t> by_size_;
    DeviceArray<std::uint32_t> may_split_;  // of the largest clusters, each
    DeviceArray<std::uint32_t> donors_;
    DeviceArray<std::uint32_t> donor_count_;
    DeviceArray<unsigned char> workspace_;
};

// Scales each centroid to length one, unless *settled != 0.
void normalise_centroids(float* centroids, std::size_t clusters, std::size_t dimensions, const std::uint32_t* settled,
                         cudaStream_t stream);

}  // namespace pgwarp::cuda
