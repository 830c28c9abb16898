#include "ivfadc/refine_factor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr std::size_t ks[3] = {1, 10, 100};
constexpr std::size_t most_factor = 100;       // of the measured factors
constexpr std::size_t most_candidates = 8192;  // candidates of the search that gives the truth, or more

std::vector<std::vector<RowResult>> ask(const Searcher& searcher, std::span<const float> queries, std::size_t count,
                                        std::size_t k, std::size_t factor, std::size_t probes, ThreadPool& pool)
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = count;
    batch.k = static_cast<std::uint32_t>(k);
    batch.settings.set("probes", static_cast<std::int64_t>(probes));
    batch.settings.set("refine_factor", static_cast<std::int64_t>(factor));
    std::vector<std::vector<RowResult>> results;
    searcher.search(batch, results, pool);
    return results;
}

std::vector<std::uint32_t> others(const std::vector<RowResult>& results, std::uint32_t own, std::size_t k)
{
    std::vector<std::uint32_t> rows;
    for (const RowResult& result : results) {
        if (result.row != own && rows.size() < k) rows.push_back(result.row);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
}

double share_of(const std::vector<std::vector<RowResult>>& found, const std::vector<std::vector<RowResult>>& truth,
                std::size_t rows, std::size_t k)
{
    std::size_t shared = 0;
    std::size_t all = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
        const std::uint32_t own = sample_row(i, truth.size(), rows);
        const auto wanted = others(truth[i], own, k);
        for (const std::uint32_t row : others(found[i], own, k)) {
            shared += std::binary_search(wanted.begin(), wanted.end(), row) ? 1 : 0;
        }
        all += wanted.size();
    }
    return all > 0 ? static_cast<double>(shared) / static_cast<double>(all) : 1;
}

}  // namespace

std::size_t RefineFactors::of(std::size_t k) const
{
    if (k <= 1) return static_cast<std::size_t>(std::ceil(candidates[0]));
    const std::size_t low = k < 10 ? 0 : 1;
    double wanted = candidates[2] / 100 * static_cast<double>(k);
    if (k < 100) {
        const double at = std::log10(static_cast<double>(k)) - static_cast<double>(low);
        wanted = std::pow(candidates[low], 1 - at) * std::pow(candidates[low + 1], at);
    }
    return static_cast<std::size_t>(std::max(1.0, std::ceil(wanted / static_cast<double>(k) - 1e-9)));
}

std::uint32_t sample_row(std::size_t i, std::size_t count, std::size_t rows)
{
    return static_cast<std::uint32_t>(i * rows / count);
}

RefineFactors measure_refine_factors(const Searcher& searcher, std::span<const float> queries, std::size_t count,
                                     std::size_t rows, std::size_t probes, double share, ThreadPool& pool)
{
    RefineFactors factors;
    for (std::size_t column = 0; column < 3; ++column) {
        // One more than k, as the query's own row comes first.
        const std::size_t k = ks[column] + 1;
        const auto truth = ask(searcher, queries, count, k, std::max(most_factor, most_candidates / k), probes, pool);
        std::size_t factor = 1;
        while (factor < most_factor &&
               share_of(ask(searcher, queries, count, k, factor, probes, pool), truth, rows, k - 1) < share) {
            factor = factor < 4 ? factor + 1 : factor + factor / 2;
        }
        factors.candidates[column] = static_cast<double>(std::min(factor, most_factor) * k);
    }
    // More wanted rows never need fewer candidates.
    for (int i = 1; i < 3; ++i) factors.candidates[i] = std::max(factors.candidates[i], factors.candidates[i - 1]);
    return factors;
}

}  // namespace pgwarp::cuda::ivfadc
