// Recall of an inverted file whose lists are ranked exactly: the share of true neighbours in the probed lists.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

class Coverage
{
public:
    Coverage(Metric coarse, std::span<const float> queries, std::size_t dimensions, std::span<const float> centroids,
             const std::vector<std::uint32_t>& list_of_row, const std::vector<std::vector<std::uint32_t>>& truth,
             ThreadPool& pool);

    // For each query, the share of its k true neighbours within so many probes, k as in Calibration::ks.
    std::vector<std::array<float, 4>> shares(std::int64_t probes) const;

private:
    // rank_[q][i] = place of the list of q's i-th neighbour among the lists as q probes them.
    std::vector<std::vector<std::uint32_t>> rank_;
};

}  // namespace pgwarp
