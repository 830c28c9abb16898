#include "index/graph/calibration.h"

#include <algorithm>
#include <array>

#include "index/calibrate.h"
#include "index/graph/graph.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_held_out = 400;
constexpr std::size_t fewest_measured = 40;
// Searches that keep more rows are measured with fewer queries: their recall varies less.
constexpr std::int64_t widest_with_all = 96;
constexpr float enough_recall = 0.9985F;  // up to the hundred nearest; wider searches are not worth measuring

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
float share_as_near(std::span<const RowResult> results, double farthest, std::size_t truth, std::size_t k)
{
    const std::size_t count = std::min(k, truth);
    if (count == 0) return -1;
    const auto near = [farthest](const RowResult& result) { return result.distance <= farthest; };
    const auto found = results.first(std::min(count, results.size()));
    return static_cast<float>(std::count_if(found.begin(), found.end(), near)) / static_cast<float>(count);
}

class Measurement
{
public:
    Measurement(const GraphCalibration& input, const BuildProgress& progress, ThreadPool& pool)
        : input_(input), progress_(progress), pool_(pool)
    {
        for (std::size_t column = 0; column < 4; ++column)
            widths_[column] = width_of(input.searcher.result_kind(), input.metric, Calibration::ks[column]);
    }

    // A search keeps at least as many rows as are asked for: columns that ask for more than ef are the same for all
    // efforts up to there, and measured once; the others come from one search.
    Shares at(std::int64_t ef)
    {
        Shares shares(input_.truth.size(), {-1, -1, -1, -1});
        std::size_t together = 0;
        while (together < 4 && widths_[together] <= static_cast<std::size_t>(ef)) ++together;
        const auto queries = std::clamp<std::size_t>(
            input_.truth.size() * static_cast<std::size_t>(widest_with_all) / static_cast<std::size_t>(ef),
            std::min(fewest_measured, input_.truth.size()), input_.truth.size());
        if (together > 0) search(ef, widths_[together - 1], queries, 0, together, shares);
        for (std::size_t column = together; column < 4; ++column) {
            if (!measures(column)) continue;
            if (narrow_[column].empty()) {
                narrow_[column].assign(input_.truth.size(), {-1, -1, -1, -1});
                const std::size_t all = column < 2 ? input_.truth.size() : std::min(fewest_measured, queries);
                search(1, widths_[column], all, column, column + 1, narrow_[column]);
            }
            for (std::size_t q = 0; q < shares.size(); ++q) shares[q][column] = narrow_[column][q][column];
        }
        return shares;
    }

private:
    // A k beyond the rows there are says nothing.
    bool measures(std::size_t column) const { return column == 0 || input_.rows > 2 * Calibration::ks[column]; }

    void search(std::int64_t ef, std::size_t k, std::size_t queries, std::size_t first_column, std::size_t end_column,
                Shares& shares) const
    {
        SearchBatch batch;
        batch.queries = input_.queries;
        batch.count = queries;
        batch.k = static_cast<std::uint32_t>(k);
        batch.effort = ef;
        batch.cancel = progress_.cancel;
        std::vector<std::vector<RowResult>> results;
        input_.searcher.search(batch, results, pool_);
        for (std::size_t q = 0; q < queries; ++q) {
            for (std::size_t column = first_column; column < end_column; ++column) {
                if (measures(column)) shares[q][column] = share(results[q], q, column);
            }
        }
    }

    float share(std::span<const RowResult> results, std::size_t query, std::size_t column) const
    {
        const std::vector<std::uint32_t>& truth = input_.truth[query];
        const std::size_t k = Calibration::ks[column];
        if (input_.farthest.empty()) return share_found(results, truth, k, widths_[column]);
        return share_as_near(results, input_.farthest[query][column], truth.size(), k);
    }

    const GraphCalibration& input_;
    const BuildProgress& progress_;
    ThreadPool& pool_;
    std::size_t widths_[4];
    Shares narrow_[4];
};

}  // namespace

std::size_t held_out_sample(std::size_t rows)
{
    return std::min(rows / 5, most_held_out);
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
        if (std::all_of(recall, recall + 3, [](float at_k) { return at_k < 0 || at_k >= enough_recall; })) break;
    }
    return curve.calibration();
}

}  // namespace pgwarp
