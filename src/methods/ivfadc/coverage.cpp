#include "methods/ivfadc/coverage.h"

#include <algorithm>
#include <numeric>

#include "numeric/distance.h"

namespace pgwarp
{

Coverage::Coverage(Metric coarse, std::span<const float> queries, std::size_t dimensions,
                   std::span<const float> centroids, const std::vector<std::uint32_t>& list_of_row,
                   const std::vector<std::vector<std::uint32_t>>& truth, ThreadPool& pool)
    : rank_(truth.size())
{
    const std::size_t lists = centroids.size() / dimensions;
    pool.parallel_for(truth.size(), 8, [&](std::size_t begin, std::size_t end) {
        std::vector<float> distance(lists);
        std::vector<std::uint32_t> order(lists);
        std::vector<std::uint32_t> place(lists);
        for (std::size_t q = begin; q < end; ++q) {
            scores(coarse, queries.data() + q * dimensions, centroids.data(), lists, dimensions, distance.data());
            std::iota(order.begin(), order.end(), 0U);
            std::sort(order.begin(), order.end(),
                      [&](auto a, auto b) { return distance[a] != distance[b] ? distance[a] < distance[b] : a < b; });
            for (std::size_t i = 0; i < lists; ++i) place[order[i]] = static_cast<std::uint32_t>(i);
            for (const std::uint32_t row : truth[q]) rank_[q].push_back(place[list_of_row[row]]);
        }
    });
}

std::vector<std::array<float, 4>> Coverage::shares(std::int64_t probes) const
{
    std::vector<std::array<float, 4>> shares(rank_.size(), {-1, -1, -1, -1});
    for (std::size_t q = 0; q < rank_.size(); ++q) {
        for (std::size_t column = 0; column < 4; ++column) {
            // Searches for more rows than there are find all: of fewer than a column's own k, all are measured.
            if (column > 0 && rank_[q].size() <= Calibration::ks[column - 1]) continue;
            const std::size_t count = std::min<std::size_t>(Calibration::ks[column], rank_[q].size());
            if (count == 0) continue;
            const auto found = std::count_if(rank_[q].begin(), rank_[q].begin() + static_cast<std::ptrdiff_t>(count),
                                             [probes](std::uint32_t rank) { return rank < probes; });
            shares[q][column] = static_cast<float>(found) / static_cast<float>(count);
        }
    }
    return shares;
}

}  // namespace pgwarp
