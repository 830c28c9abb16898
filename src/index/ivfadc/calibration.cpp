#include "index/ivfadc/calibration.h"

#include <algorithm>
#include <array>

#include "index/calibrate.h"
#include "index/ivfadc/coverage.h"

namespace pgwarp
{

namespace
{

// The share of the k true neighbours of a row, itself left out, among the first results; negative without any.
float share_found(const std::vector<RowResult>& results, const std::vector<std::uint32_t>& truth, std::uint32_t own,
                  std::size_t k, std::size_t first)
{
    const std::size_t count = std::min(k, truth.size());
    if (count == 0) return -1;
    std::vector<std::uint32_t> wanted(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(wanted.begin(), wanted.end());
    std::size_t seen = 0;
    std::size_t found = 0;
    for (const RowResult& result : results) {
        if (result.row == own) continue;
        if (seen++ == first) break;
        found += std::binary_search(wanted.begin(), wanted.end(), result.row) ? 1 : 0;
    }
    return static_cast<float>(found) / static_cast<float>(count);
}

// Results that a search for k is asked for. What bytes propose the backend ranks again by the rows themselves, of as
// many as search_plan.cpp asks for; product codes are held to their own ranking.
std::size_t asked_for(const IvfOptions& options, std::size_t k)
{
    return options.byte_codes ? std::max<std::size_t>(4 * k, 64) : k;
}

// Shares of the true neighbours that real searches with so many probes find.
std::vector<std::array<float, 4>> shares_of_searches(const IvfadcCalibration& input, const Searcher& searcher,
                                                     std::int64_t probes, const CancelToken* cancel, ThreadPool& pool)
{
    std::vector<std::array<float, 4>> shares(input.sample.size(), {-1, -1, -1, -1});
    for (std::size_t column = 0; column < 3; ++column) {
        const std::size_t k = Calibration::ks[column];
        const std::size_t asked = asked_for(input.options, k);
        SearchBatch batch;
        batch.queries = input.queries;
        batch.count = input.sample.size();
        batch.k = static_cast<std::uint32_t>(asked + 1);
        batch.effort = probes;
        batch.cancel = cancel;
        std::vector<std::vector<RowResult>> results;
        searcher.search(batch, results, pool);
        for (std::size_t q = 0; q < input.sample.size(); ++q)
            shares[q][column] = share_found(results[q], input.truth[q], input.sample[q], k, asked);
    }
    return shares;
}

}  // namespace

Calibration IvfadcCalibration::run(const BuildProgress& progress, ThreadPool& pool) const
{
    RecallCurve curve(sample.size());
    const std::vector<std::int64_t> schedule = probe_schedule(options.lists);
    if (options.keeps_codes() && options.refine == IvfRefine::none) {
        const std::unique_ptr<Searcher> searcher = make_searcher();
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            if (progress.report) progress.report("calibrating", i, schedule.size());
            curve.add(schedule[i], shares_of_searches(*this, *searcher, schedule[i], progress.cancel, pool));
        }
    } else {
        const Coverage coverage(coarse_metric(metric), queries, dimensions, centroids, list_of_row, truth, pool);
        for (const std::int64_t probes : schedule) curve.add(probes, coverage.shares(probes));
    }
    return curve.calibration();
}

}  // namespace pgwarp
