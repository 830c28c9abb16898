#include "methods/ivfadc/calibration.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "methods/calibrate.h"
#include "methods/ivfadc/coverage.h"
#include "protocol/calibration.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t steps_of_k = 2;     // between the k of two columns
constexpr double enough_recall = 0.9985;  // more probes are not worth measuring

using Shares = std::vector<std::array<float, 4>>;

// The share of the true neighbours of a row, itself left out, among so many results; negative without any.
float share_found(const std::vector<RowResult>& results, std::span<const std::uint32_t> truth, std::uint32_t own,
                  std::size_t width)
{
    if (truth.empty()) return -1;
    std::vector<std::uint32_t> wanted(truth.begin(), truth.end());
    std::sort(wanted.begin(), wanted.end());
    std::size_t seen = 0;
    std::size_t found = 0;
    for (const RowResult& result : results) {
        if (result.row == own) continue;
        if (seen++ == width) break;
        found += std::binary_search(wanted.begin(), wanted.end(), result.row) ? 1 : 0;
    }
    return static_cast<float>(found) / static_cast<float>(truth.size());
}

bool finds_enough(const Shares& shares, std::size_t column)
{
    double sum = 0;
    for (const auto& share : shares) sum += share[column];
    return !shares.empty() && (shares.front()[column] < 0 || sum >= enough_recall * static_cast<double>(shares.size()));
}

// Shares of the k true neighbours of each row that a search with so many probes finds.
std::vector<float> shares_at(const IvfadcCalibration& input, const Searcher& searcher, std::int64_t probes,
                             std::uint32_t k, const CancelToken* cancel, ThreadPool& pool)
{
    SearchBatch batch;
    batch.queries = input.queries;
    batch.count = input.sample.size();
    batch.k = search_width({ResultKind::approximate}, k) + 1;
    batch.effort = probes;
    batch.cancel = cancel;
    std::vector<std::vector<RowResult>> results;
    searcher.search(batch, results, pool);
    std::vector<float> shares(input.sample.size());
    for (std::size_t q = 0; q < shares.size(); ++q) {
        const auto truth = std::span(input.truth[q]).first(std::min<std::size_t>(k, input.truth[q].size()));
        const std::uint32_t width = search_width({ResultKind::approximate}, static_cast<std::uint32_t>(truth.size()));
        shares[q] = share_found(results[q], truth, input.sample[q], width);
    }
    return shares;
}

// At each column's k that is found worst. `fewer`: the shares with fewer probes, or none.
Shares shares_of_searches(const IvfadcCalibration& input, const Searcher& searcher, std::int64_t probes,
                          const Shares& fewer, const CancelToken* cancel, ThreadPool& pool)
{
    Shares shares(input.sample.size(), {-1, -1, -1, -1});
    const std::size_t others = input.list_of_row.size() - 1;
    for (std::size_t column = 0; column < 4; ++column) {
        if (finds_enough(fewer, column)) {
            for (std::size_t q = 0; q < shares.size(); ++q) shares[q][column] = fewer[q][column];
            continue;
        }
        std::vector<float> worst;
        for (const std::uint32_t k : measured_ks(column, others, ResultKind::approximate, steps_of_k)) {
            const std::vector<float> of_k = shares_at(input, searcher, probes, k, cancel, pool);
            const auto sum = [](const std::vector<float>& all) { return std::accumulate(all.begin(), all.end(), 0.0); };
            if (worst.empty() || sum(of_k) < sum(worst)) worst = of_k;
        }
        for (std::size_t q = 0; q < worst.size(); ++q) shares[q][column] = worst[q];
    }
    return shares;
}

}  // namespace

Calibration IvfadcCalibration::run(const BuildProgress& progress, ThreadPool& pool) const
{
    const bool codes_rank = options.product_codes && options.refine == IvfRefine::none;
    RecallCurve curve(sample.size(), !codes_rank);
    const std::vector<std::int64_t> schedule = probe_schedule(options.lists);
    if (codes_rank) {
        const std::unique_ptr<Searcher> searcher = make_searcher();
        Shares shares;
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            if (progress.report) progress.report("calibrating", i, schedule.size());
            shares = shares_of_searches(*this, *searcher, schedule[i], shares, progress.cancel, pool);
            curve.add(schedule[i], shares);
            if (finds_enough(shares, 0) && finds_enough(shares, 1) && finds_enough(shares, 2) &&
                finds_enough(shares, 3))
                break;
        }
    } else {
        const Coverage coverage(coarse_metric(metric), queries, dimensions, centroids, list_of_row, truth, pool);
        for (const std::int64_t probes : schedule) {
            const bool all = static_cast<std::size_t>(probes) >= options.lists;
            all ? curve.add_complete(probes, coverage.shares(probes)) : curve.add(probes, coverage.shares(probes));
        }
    }
    return curve.calibration();
}

}  // namespace pgwarp
