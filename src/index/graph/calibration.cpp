#include "index/graph/calibration.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "index/calibrate.h"
#include "index/graph/graph.h"
#include "numeric/metric.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_held_out = 400;
constexpr std::size_t fewest_measured = 40;
// Searches that keep more rows are measured with fewer queries: their recall varies less.
constexpr std::int64_t widest_with_all = 96;
constexpr float enough_recall = 0.9985F;  // wider searches are not worth measuring

// Estimates are no better than the candidates that the backend ranks: when searches this many points apart, the hundred
// nearest among them, find no more, wider ones won't.
constexpr std::uint32_t points_without_gain = 3;
constexpr float worthwhile_gain = 0.002F;

using Shares = std::vector<std::array<float, 4>>;

// How many results the backend asks for and ranks by the rows themselves.
std::size_t width_of(ResultKind kind, Metric metric, std::size_t k)
{
    switch (kind) {
        case ResultKind::exact:
            return metric == Metric::cosine ? k + 2 : k;
        case ResultKind::lower_bound:
            return k + k / 8 + 3;
        case ResultKind::approximate:
            return std::max<std::size_t>(4 * k, 64);
    }
    return k;
}

// The share of the k true neighbours among the first `width` results; negative without any.
float share_found(std::span<const RowResult> results, std::span<const std::uint32_t> truth, std::size_t k,
                  std::size_t width)
{
    const std::size_t count = std::min(k, truth.size());
    if (count == 0) return -1;
    std::vector<std::uint32_t> found;
    for (const RowResult& result : results.first(std::min(width, results.size()))) found.push_back(result.row);
    std::sort(found.begin(), found.end());
    std::size_t hits = 0;
    for (const std::uint32_t row : truth.first(count)) hits += std::binary_search(found.begin(), found.end(), row);
    return static_cast<float>(hits) / static_cast<float>(count);
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

// Any k up to that of its column goes by it, from the column before on, and a search keeps no fewer rows than it
// returns. So what counts is the k for which so much effort finds the smallest share. Where rows are missed along the
// way, that is the largest k that the effort suffices for, as recall falls with k; or the smallest, where it suffices
// for none, as the search is then as wide as k asks for, and recall grows with k. Where estimates limit what is found,
// recall grows with k as well.
class Measurement
{
public:
    Measurement(const GraphCalibration& input, const BuildProgress& progress, ThreadPool& pool)
        : input_(input), progress_(progress), pool_(pool)
    {
    }

    Shares at(std::int64_t ef)
    {
        Shares shares(input_.truth.size(), {-1, -1, -1, -1});
        std::size_t together = 0;
        while (together < 4 && width(least_k(together)) <= static_cast<std::size_t>(ef)) ++together;
        const auto queries = std::clamp<std::size_t>(
            input_.truth.size() * static_cast<std::size_t>(widest_with_all) / static_cast<std::size_t>(ef),
            std::min(fewest_measured, input_.truth.size()), input_.truth.size());
        if (together > 0) search(ef, queries, 0, together, shares);
        // The others are the same for all efforts up to here, and measured once.
        for (std::size_t column = together; column < 4; ++column) {
            if (!measures(column)) continue;
            if (narrow_[column].empty()) {
                narrow_[column].assign(input_.truth.size(), {-1, -1, -1, -1});
                const std::size_t all = column < 2 ? input_.truth.size() : std::min(fewest_measured, queries);
                search(1, all, column, column + 1, narrow_[column]);
            }
            for (std::size_t q = 0; q < shares.size(); ++q) shares[q][column] = narrow_[column][q][column];
        }
        return shares;
    }

    // Whether a search for so many keeps more than that.
    bool is_narrow(std::size_t column, std::int64_t ef) const
    {
        return measures(column) && static_cast<std::size_t>(ef) < width(Calibration::ks[column]);
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
    // A k beyond the rows there are says nothing.
    bool measures(std::size_t column) const { return column == 0 || input_.rows > 2 * Calibration::ks[column]; }

    std::size_t width(std::size_t k) const { return width_of(input_.searcher.result_kind(), input_.metric, k); }
    static std::size_t least_k(std::size_t column) { return column == 0 ? 1 : Calibration::ks[column - 1] + 1; }
    // The largest for which no more results are asked for.
    std::size_t largest_k(std::size_t column, std::size_t results) const
    {
        std::size_t k = Calibration::ks[column];
        while (k > least_k(column) && width(k) > results) --k;
        return k;
    }

    void search(std::int64_t ef, std::size_t queries, std::size_t first_column, std::size_t end_column,
                Shares& shares) const
    {
        const auto kept = std::max(static_cast<std::size_t>(ef), width(least_k(end_column - 1)));
        SearchBatch batch;
        batch.queries = input_.queries;
        batch.count = queries;
        batch.k = static_cast<std::uint32_t>(width(largest_k(end_column - 1, kept)));
        batch.effort = ef;
        batch.dead = input_.dead;
        batch.cancel = progress_.cancel;
        std::vector<std::vector<RowResult>> results;
        input_.searcher.search(batch, results, pool_);
        for (std::size_t column = first_column; column < end_column; ++column) {
            if (!measures(column)) continue;
            const std::size_t most = largest_k(column, kept);
            const std::size_t least = largest_k(column, width(least_k(column)));
            const std::vector<float> of_most = shares_of(results, most);
            const std::vector<float> of_least = most == least ? of_most : shares_of(results, least);
            const auto mean = [](const std::vector<float>& all) {
                return std::accumulate(all.begin(), all.end(), 0.0);
            };
            const std::vector<float>& worse = mean(of_least) < mean(of_most) ? of_least : of_most;
            for (std::size_t q = 0; q < queries; ++q) shares[q][column] = worse[q];
        }
    }

    std::vector<float> shares_of(std::span<const std::vector<RowResult>> results, std::size_t k) const
    {
        std::vector<float> shares(results.size());
        for (std::size_t q = 0; q < shares.size(); ++q) {
            shares[q] = input_.distances.empty() ? share_found(results[q], input_.truth[q], k, width(k))
                                                 : share_as_near(results[q], input_.distances[q], k);
        }
        return shares;
    }

    const GraphCalibration& input_;
    const BuildProgress& progress_;
    ThreadPool& pool_;
    Shares narrow_[4];
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
        const auto enough = [](float at_k) { return at_k < 0 || at_k >= enough_recall; };
        if (std::all_of(recall, recall + 3, enough) && (enough(recall[3]) || !measurement.is_narrow(3, schedule[i])))
            break;
        if (measurement.gains_end(so_far)) break;
    }
    return curve.calibration();
}

}  // namespace pgwarp
