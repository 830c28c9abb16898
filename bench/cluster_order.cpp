#include "cluster_order.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t leaf_rows = 16;
constexpr std::size_t sampled_rows = 256;
constexpr int power_rounds = 4;

float product(std::span<const float> a, std::span<const float> b)
{
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0F);
}

class ClusterOrder
{
public:
    explicit ClusterOrder(const Matrix<float>& rows) : rows_(rows), order_(rows.rows), projected_(rows.rows)
    {
        std::iota(order_.begin(), order_.end(), 0U);
        cut(order_);
    }

    const std::vector<std::uint32_t>& order() const { return order_; }

private:
    void cut(std::span<std::uint32_t> part)
    {
        if (part.size() <= leaf_rows) return;
        const std::vector<float> direction = main_direction(part);
        for (const std::uint32_t row : part) projected_[row] = product(rows_.row(row), direction);
        const std::size_t half = part.size() / 2;
        std::nth_element(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(half), part.end(),
                         [&](std::uint32_t a, std::uint32_t b) {
                             return std::pair(projected_[a], a) < std::pair(projected_[b], b);
                         });
        cut(part.first(half));
        cut(part.subspan(half));
    }

    // By power iteration over some rows of the part, less their mean.
    std::vector<float> main_direction(std::span<const std::uint32_t> part) const
    {
        const std::size_t step = std::max<std::size_t>(1, part.size() / sampled_rows);
        std::vector<std::vector<float>> sample;
        std::vector<float> mean(rows_.columns);
        for (std::size_t i = 0; i < part.size(); i += step) {
            const auto row = rows_.row(part[i]);
            sample.emplace_back(row.begin(), row.end());
            for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += row[d];
        }
        for (float& value : mean) value /= static_cast<float>(sample.size());
        for (auto& row : sample) std::ranges::transform(row, mean, row.begin(), std::minus<>());
        std::vector<float> direction = sample.front();
        for (int round = 0; round < power_rounds; ++round) {
            std::vector<float> next(rows_.columns);
            for (const auto& row : sample) {
                const float weight = product(row, direction);
                for (std::size_t d = 0; d < next.size(); ++d) next[d] += weight * row[d];
            }
            const float length = std::sqrt(product(next, next));
            if (length == 0) break;
            for (float& value : next) value /= length;
            direction = std::move(next);
        }
        return direction;
    }

    const Matrix<float>& rows_;
    std::vector<std::uint32_t> order_;
    std::vector<float> projected_;
};

}  // namespace

std::vector<std::uint32_t> cluster_order(const Matrix<float>& rows)
{
    return ClusterOrder(rows).order();
}

}  // namespace pgwarp::bench
