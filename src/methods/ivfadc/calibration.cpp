// Recall by probes: ranks of the lists of true neighbours, or real searches.
#include "methods/ivfadc/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "methods/recall/curve.h"
#include "methods/recall/searches.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

// Returns the rank of each true neighbour's list in the probing order of its query: [query][neighbour].
std::vector<std::vector<std::uint32_t>> probe_ranks(const IvfadcCalibration& input, ThreadPool& pool)
{
    const CalibrationSample& sample = input.sample;
    const std::size_t dimensions = sample.queries.size() / sample.rows.size();
    const std::size_t lists = input.centroids.size() / dimensions;
    std::vector<std::vector<std::uint32_t>> ranks(sample.truth.size());
    pool.parallel_for(sample.truth.size(), 8, [&](std::size_t begin, std::size_t end) {
        std::vector<float> distance(lists);
        std::vector<std::uint32_t> order(lists);
        std::vector<std::uint32_t> place(lists);
        for (std::size_t q = begin; q < end; ++q) {
            scores(coarse_metric(input.metric), sample.queries.data() + q * dimensions, input.centroids.data(), lists,
                   dimensions, distance.data());
            // An overflow may leave no number, which has no place in an order.
            for (float& value : distance) value = std::isnan(value) ? std::numeric_limits<float>::infinity() : value;
            std::iota(order.begin(), order.end(), 0U);
            std::sort(order.begin(), order.end(),
                      [&](auto a, auto b) { return distance[a] != distance[b] ? distance[a] < distance[b] : a < b; });
            for (std::size_t i = 0; i < lists; ++i) place[order[i]] = static_cast<std::uint32_t>(i);
            for (const std::uint32_t row : sample.truth[q]) ranks[q].push_back(place[input.list_of_row[row]]);
        }
    });
    return ranks;
}

// Returns for each query the share of its k true neighbours within `probes` lists, k as in Calibration::ks.
std::vector<std::array<float, 4>> shares_within(const std::vector<std::vector<std::uint32_t>>& ranks,
                                                std::int64_t probes)
{
    std::vector<std::array<float, 4>> shares(ranks.size(), {-1, -1, -1, -1});
    for (std::size_t q = 0; q < ranks.size(); ++q) {
        for (std::size_t column = 0; column < 4; ++column) {
            // A search for more rows than there are finds all. With fewer than a column's own k, all are counted.
            if (column > 0 && ranks[q].size() <= Calibration::ks[column - 1]) continue;
            const std::size_t count = std::min<std::size_t>(Calibration::ks[column], ranks[q].size());
            if (count == 0) continue;
            const auto found = std::count_if(ranks[q].begin(), ranks[q].begin() + static_cast<std::ptrdiff_t>(count),
                                             [probes](std::uint32_t rank) { return rank < probes; });
            shares[q][column] = static_cast<float>(found) / static_cast<float>(count);
        }
    }
    return shares;
}

}  // namespace

// Returns the number of probes from which on codes may have told all they can: many times the rows of the widest
// search, so that no more rows of its lists are missing.
std::int64_t IvfadcCalibration::gains_from() const
{
    constexpr std::size_t most_waiting = 16384;  // rows searched
    return static_cast<std::int64_t>(std::max<std::size_t>(1, most_waiting * options.lists / list_of_row.size()));
}

Calibration IvfadcCalibration::run(const BuildProgress& progress, ThreadPool& pool) const
{
    const std::vector<std::int64_t> schedule = probe_schedule(options.lists);
    if (searcher != nullptr) {
        const RecallInput input{*searcher, list_of_row.size() - 1, sample.queries, sample.truth, sample.rows};
        return measure_recall(input, {.efforts = schedule, .gains_from = gains_from()}, progress, pool);
    }
    RecallCurve curve(sample.rows.size(), true);
    const auto ranks = probe_ranks(*this, pool);
    for (const std::int64_t probes : schedule) {
        const bool all = static_cast<std::size_t>(probes) >= options.lists;
        all ? curve.add_complete(probes, shares_within(ranks, probes))
            : curve.add(probes, shares_within(ranks, probes));
    }
    return curve.calibration();
}

}  // namespace pgwarp
