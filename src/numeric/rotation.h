// The orthogonal rotation before a product quantizer, which lowers its error: up to 2,048 dimensions a learnt matrix
// (OPQ); above, where a matrix would cost more than the rest of the search, a random rotation (hadamard.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/parallel.h"

namespace pgwarp
{

class Rotation
{
public:
    static constexpr std::size_t most_learnt = 2048;
    static constexpr bool learnt(std::size_t dimensions) { return dimensions <= most_learnt; }

    // No rotation.
    Rotation() = default;
    // A rotation to be loaded: matrix() or signs() has its final size, the other is empty.
    explicit Rotation(std::size_t dimensions);
    // Trains on rows [count][dimensions] for a quantizer of `subquantizers` parts. Throws Cancelled.
    Rotation(std::span<const float> rows, std::size_t dimensions, std::size_t subquantizers, std::uint64_t seed,
             ThreadPool& pool, const CancelToken* cancel = nullptr);

    bool empty() const { return dimensions_ == 0; }
    std::span<float> matrix() { return matrix_; }
    std::span<const float> matrix() const { return matrix_; }
    std::span<std::uint8_t> signs() { return signs_; }
    std::span<const std::uint8_t> signs() const { return signs_; }
    std::size_t bytes() const { return matrix_.size() * sizeof(float) + signs_.size(); }

    // out = the rotated rows; out and rows must not overlap.
    void apply(std::span<const float> rows, std::span<float> out, ThreadPool& pool) const;
    // The same for one row.
    void apply(const float* row, float* out) const;

private:
    std::size_t dimensions_ = 0;
    std::vector<float> matrix_;        // [dimensions][dimensions]
    std::vector<std::uint8_t> signs_;  // [HadamardPlan::rounds][dimensions]
};

}  // namespace pgwarp
