// Random signs and rounds of the Walsh-Hadamard transform.
#include "numeric/hadamard.h"

#include <random>

namespace pgwarp
{

namespace
{

// Walsh-Hadamard transform in place, unscaled.
void transform(float* values, int width)
{
    for (int step = 1; step < width; step *= 2) {
        for (int begin = 0; begin < width; begin += 2 * step) {
            float* low = values + begin;
            float* high = low + step;
            for (int i = 0; i < step; ++i) {
                const float sum = low[i] + high[i];
                high[i] = low[i] - high[i];
                low[i] = sum;
            }
        }
    }
}

}  // namespace

std::vector<std::uint8_t> draw_signs(std::size_t dimensions, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> signs(HadamardPlan::rounds * dimensions);
    for (std::uint8_t& sign : signs) sign = static_cast<std::uint8_t>(random() >> 63);
    return signs;
}

void hadamard_rotate(std::span<const std::uint8_t> signs, float* row)
{
    const HadamardPlan plan(signs.size() / HadamardPlan::rounds);
    for (int round = 0; round < HadamardPlan::rounds; ++round) {
        const std::uint8_t* changes = signs.data() + static_cast<std::size_t>(round) * plan.dimensions;
        const int first = plan.first(round);
        for (int d = 0; d < plan.dimensions; ++d) row[d] = changes[d] != 0 ? -row[d] : row[d];
        // Scaling comes first, so that the sums stay in range.
        for (int d = 0; d < plan.width; ++d) row[first + d] *= plan.scale;
        transform(row + first, plan.width);
        float* partner = row + plan.partner();
        for (int d = 0; d < plan.pairs(); ++d) {
            const float sum = row[d] + partner[d];
            partner[d] = (row[d] - partner[d]) * HadamardPlan::half_turn;
            row[d] = sum * HadamardPlan::half_turn;
        }
    }
}

}  // namespace pgwarp
