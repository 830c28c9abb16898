#include "index/ivfadc/calibration.h"

#include <algorithm>
#include <array>

#include "index/calibrate.h"
#include "index/ivfadc/coverage.h"

namespace pgwarp
{

namespace
{

// The share of the k true neighbours of a row, itself left out, among the first k results; negative without any.
float share_found(const std::vector<RowResult>& results, const std::vector<std::uint32_t>& truth, std::uint32_t own,
                  std::size_t k)
{
    const std::size_t count = std::min(k, truth.size());
    if (count == 0) return -1;
    std::vector<std::uint32_t> wanted(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(wanted.begin(), wanted.end());
    std::size_t seen = 0;
    std::size_t found = 0;
    for (const RowResult& result : results) {
        if (result.row == own) continue;
        if (seen++ == k) break;
        found += std::binary_search(wanted.begin(), wanted.end(), result.row) ? 1 : 0;
    }
    return static_cast<float>(found) / static_cast<float>(count);
}

// Shares of the true neighbours that real searches with so many probes find.
std::vector<std::array<float, 4>> shares_of_searches(const IvfadcCalibration& input, const Searcher& searcher,
                                                     std::int64_t probes, const CancelToken* cancel, ThreadPool& pool)
{
    std::vector<std::array<float, 4>> shares(input.sample.size(), {-1, -1, -1, -1});
    for (std::size_t column = 0; column < 3; ++column) {
        const std::size_t k = Calibration::ks[column];
        SearchBatch batch;
        batch.queries = input.queries;
        batch.count = input.sample.size();
        batch.k = static_cast<std::uint32_t>(k + 1);
        batch.effort = probes;
        batch.cancel = cancel;
        std::vector<std::vector<RowResult>> results;
        searcher.search(batch, results, pool);
        for (std::size_t q = 0; q < input.sample.size(); ++q)
            shares[q][column] = share_found(results[q], input.truth[q], input.sample[q], k);
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
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            if (progress.report) progress.report("calibrating", i, schedule.size());
            curve.add(schedule[i], shares_of_searches(*this, *searcher, schedule[i], progress.cancel, pool));
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
