// A random orthogonal rotation that costs d log d operations and d random signs a round. A round consists of random
// sign changes, a Walsh-Hadamard transform, and, where the transform does not cover all dimensions, a rotation of the
// first half against the second by 45 degrees. The first two steps are from Ailon and Chazelle, The fast
// Johnson-Lindenstrauss transform; the third is a step of Kac's walk. The rotation spreads variance evenly over the
// dimensions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pgwarp
{

// The schedule of rounds, the same on every device. A transform has the largest power of two as its length; even rounds
// transform the first dimensions, odd rounds the last. Sums and differences are computed in the order of their step,
// each rounded to fp32, so that all devices give the same bits.
struct HadamardPlan {
    static constexpr int rounds = 4;
    static constexpr float half_turn = 0.70710678118654752F;  // sine and cosine of 45 degrees

    int dimensions;
    int width;    // of a transform
    float scale;  // 1 / sqrt(width)

    explicit constexpr HadamardPlan(std::size_t of)
        : dimensions(static_cast<int>(of)), width(static_cast<int>(std::bit_floor(of))), scale(1)
    {
        int levels = 0;
        for (int step = width; step > 1; step /= 2) ++levels;
        for (int level = 0; level + 2 <= levels; level += 2) scale *= 0.5F;
        if (levels % 2 != 0) scale *= half_turn;
    }
    constexpr int first(int round) const { return round % 2 == 0 ? 0 : dimensions - width; }
    // Dimension i < pairs() is rotated against i + partner(). If the transform covers all dimensions it mixes the
    // halves already, and this step would undo that.
    constexpr int pairs() const { return width == dimensions ? 0 : dimensions / 2; }
    constexpr int partner() const { return (dimensions + 1) / 2; }
};

// Draws random signs [HadamardPlan::rounds][dimensions]; 1 changes the sign.
std::vector<std::uint8_t> draw_signs(std::size_t dimensions, std::uint64_t seed);

// Rotates a row of signs.size() / rounds dimensions in place.
void hadamard_rotate(std::span<const std::uint8_t> signs, float* row);

}  // namespace pgwarp
