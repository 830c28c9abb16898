#include "methods/graph/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "methods/calibrate.h"
#include "methods/graph/graph.h"
#include "numeric/metric.h"
#include "protocol/calibration.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_held_out = 400;
constexpr std::size_t fewest_measured = 40;
// Searches that keep more rows are measured with fewer queries: their recall varies less.
constexpr std::int64_t widest_with_all = 96;
constexpr std::size_t steps_of_k = 4;     // between the k of two columns
constexpr float enough_recall = 0.9985F;  // wider searches are not worth measuring

// Estimates are no better than the candidates that the backend ranks: when searches this many points apart, the hundred
// nearest among them, find no more, wider ones won't.
constexpr std::uint32_t points_without_gain = 3;
constexpr float worthwhile_gain = 0.002F;

using Shares = std::vector<std::array<float, 4>>;

// The share of the true neighbours among the first `width` results; negative without any.
float share_found(std::span<const RowResult> results, std::span<const std::uint32_t> truth, std::size_t width)
{
    if (truth.empty()) return -1;
    std::vector<std::uint32_t> found;
    for (const RowResult& result : results.first(std::min(width, results.size()))) found.push_back(result.row);
    std::sort(found.begin(), found.end());
    std::size_t hits = 0;
    for (const std::uint32_t row : truth) hits += std::binary_search(found.begin(), found.end(), row);
    return static_cast<float>(hits) / static_cast<float>(truth.size());
}

// The same by distance.
float share_as_near(std::span<const RowResult> results, std::span<const double> truth, std::size_t k)
{
    const std::size_t count = std::min(k, truth.size());
    if (count == 0) return -1;
    const double farthest = truth[count - 1];
    const auto near = [farthest](const RowResult& result) { return result.distance <= farthest; };
    const auto found = results.first(std::min(count, results.size()));
    return static_cast<float>(std::count_if(found.begin(), found.end(), near)) / static_cast<float>(count);
}

double mean_of(std::span<const float> shares)
{
    double sum = 0;
    std::size_t measured = 0;
    for (const float share : shares) {
        if (share < 0) continue;
        sum += share;
        ++measured;
    }
    return measured == 0 ? 0 : sum / static_cast<double>(measured);
}

// A column's effort serves every k from the column before up to its own, and a search keeps no fewer rows than it
// returns. At one effort recall may rise or fall with k: it falls where rows are missed along the way, and rises where
// the search is as wide as k asks for or where estimates limit it; where clusters hold fewer rows than k it does both.
// So each column is measured at several k, and its recall is that of the worst of them.
class Measurement
{
public:
    Measurement(const GraphCalibration& input, const BuildProgress& progress, ThreadPool& pool)
        : input_(input), dead_version_(new_bitmap_version()), progress_(progress), pool_(pool)
    {
    }

    Shares at(std::int64_t ef)
    {
        const std::size_t queries = input_.truth.size();
        const std::vector<std::vector<RowResult>> results = search(ef, widest_within(ef), queries_of(ef));
        Shares shares(queries, {-1, -1, -1, -1});
        for (std::size_t column = 0; column < 4; ++column) {
            std::vector<float> worst;
            for (const std::uint32_t k : ks_of(column)) {
                const bool within = width(k) <= static_cast<std::size_t>(ef);
                const std::vector<float> of_k = within ? shares_of(results, k) : narrow(k);
                if (worst.empty() || mean_of(of_k) < mean_of(worst)) worst = of_k;
            }
            for (std::size_t q = 0; q < worst.size(); ++q) shares[q][column] = worst[q];
        }
        return shares;
    }

    // Whether a search for so many keeps more than that.
    bool is_narrow(std::size_t column, std::int64_t ef) const
    {
        return !ks_of(column).empty() && static_cast<std::size_t>(ef) < width(Calibration::ks[column]);
    }

    bool gains_end(const Calibration& so_far) const
    {
        if (input_.searcher.result_kind() != ResultKind::approximate || so_far.count <= points_without_gain)
            return false;
        const CalibrationPoint& before = so_far.points[so_far.count - 1 - points_without_gain];
        const CalibrationPoint& now = so_far.points[so_far.count - 1];
        if (is_narrow(2, before.effort)) return false;
        for (std::size_t column = 0; column < 3; ++column)
            if (now.recall[column] - before.recall[column] >= worthwhile_gain) return false;
        return true;
    }

private:
    std::size_t width(std::size_t k) const
    {
        return search_width({input_.searcher.result_kind()}, static_cast<std::uint32_t>(k));
    }
    std::vector<std::uint32_t> ks_of(std::size_t column) const
    {
        return measured_ks(column, input_.rows, input_.searcher.result_kind(), steps_of_k);
    }

    // Of the k that are measured, the results that the largest takes for which so many rows kept are enough.
    std::size_t widest_within(std::int64_t ef) const
    {
        std::size_t widest = width(1);
        for (std::size_t column = 0; column < 4; ++column) {
            for (const std::uint32_t k : ks_of(column))
                if (width(k) <= static_cast<std::size_t>(ef)) widest = std::max(widest, width(k));
        }
        return widest;
    }

    std::size_t queries_of(std::int64_t ef) const
    {
        const std::size_t all = input_.truth.size();
        return std::clamp<std::size_t>(all * static_cast<std::size_t>(widest_with_all) / static_cast<std::size_t>(ef),
                                       std::min(fewest_measured, all), all);
    }

    // Searches no wider than k asks for are the same for all smaller efforts, and made once.
    const std::vector<float>& narrow(std::size_t k)
    {
        std::vector<float>& shares = narrow_[k];
        if (shares.empty()) {
            const auto kept = static_cast<std::int64_t>(width(k));
            shares = shares_of(search(kept, width(k), queries_of(kept)), k);
        }
        return shares;
    }

    std::vector<std::vector<RowResult>> search(std::int64_t ef, std::size_t k, std::size_t queries) const
    {
        SearchBatch batch;
        batch.queries = input_.queries;
        batch.count = queries;
        batch.k = static_cast<std::uint32_t>(k);
        batch.effort = ef;
        batch.dead = input_.dead;
        batch.dead_version = dead_version_;
        batch.cancel = progress_.cancel;
        std::vector<std::vector<RowResult>> results;
        input_.searcher.search(batch, results, pool_);
        return results;
    }

    std::vector<float> shares_of(std::span<const std::vector<RowResult>> results, std::size_t k) const
    {
        std::vector<float> shares(results.size());
        for (std::size_t q = 0; q < shares.size(); ++q) {
            // Fewer true neighbours than k are looked for among no more results than are asked for with so many.
            const std::span<const std::uint32_t> truth =
                std::span(input_.truth[q]).first(std::min(k, input_.truth[q].size()));
            shares[q] = input_.distances.empty() ? share_found(results[q], truth, width(truth.size()))
                                                 : share_as_near(results[q], input_.distances[q], k);
        }
        return shares;
    }

    const GraphCalibration& input_;
    const std::uint64_t dead_version_;
    const BuildProgress& progress_;
    ThreadPool& pool_;
    std::map<std::size_t, std::vector<float>> narrow_;  // by k
};

}  // namespace

std::size_t held_out_sample(std::size_t rows)
{
    return std::min(rows / 5, most_held_out);
}

std::vector<std::vector<double>> distances_of_truth(Metric metric, std::span<const float> rows, std::size_t dimensions,
                                                    std::span<const float> queries,
                                                    const std::vector<std::vector<std::uint32_t>>& truth)
{
    if (!is_of_bits(metric)) return {};
    std::vector<std::vector<double>> distances(truth.size());
    for (std::size_t q = 0; q < truth.size(); ++q) {
        const float* query = queries.data() + q * dimensions;
        for (const std::uint32_t row : truth[q])
            distances[q].push_back(canonical_distance(metric, query, rows.data() + row * dimensions, dimensions));
    }
    return distances;
}

Calibration GraphCalibration::run(const BuildProgress& progress, ThreadPool& pool) const
{
    RecallCurve curve(truth.size());
    Measurement measurement(*this, progress, pool);
    const std::vector<std::int64_t> schedule = ef_search_schedule(rows);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        progress.report("calibrating", i, schedule.size());
        curve.add(schedule[i], measurement.at(schedule[i]));
        const Calibration so_far = curve.calibration();
        const float* recall = so_far.points[so_far.count - 1].recall;
        if (std::all_of(recall, recall + 4, [](float at_k) { return at_k < 0 || at_k >= enough_recall; })) break;
        if (measurement.gains_end(so_far)) break;
    }
    return curve.calibration();
}

}  // namespace pgwarp
