// The nearest of many centroids for each row: a matrix product fused with the selection, so no scores go to memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pgwarp
{

// Centroids in the kernel's layout: blocks of 32, dimension by dimension, with half their squared norms.
class PackedCentroids
{
public:
    static constexpr std::size_t block = 32;

    // centroids [count][dimensions].
    PackedCentroids(std::span<const float> centroids, std::size_t dimensions);

    std::size_t count() const { return count_; }
    std::size_t dimensions() const { return dimensions_; }
    std::size_t blocks() const { return half_norms_.size() / block; }
    const float* values(std::size_t at) const { return values_.data() + at * block * dimensions_; }
    const float* half_norms(std::size_t at) const { return half_norms_.data() + at * block; }

private:
    std::size_t count_;
    std::size_t dimensions_;
    std::vector<float> values_;      // [blocks][dimensions][block]
    std::vector<float> half_norms_;  // [blocks][block], infinite in unused places
};

// index[i] = the centroid with the smallest |c|^2 / 2 - c.row for row i at rows + i * stride; ties go to the lower
// index. Runs on the caller's thread.
void find_nearest(const PackedCentroids& centroids, const float* rows, std::size_t count, std::size_t stride,
                  std::uint32_t* index);

// table[c] = -sum over d of values[d][c] * row[d] for the 256 codewords of one part, stored dimension by dimension:
// values [dimensions][256].
void codeword_table(const float* values, std::size_t dimensions, const float* row, float* table);

}  // namespace pgwarp
