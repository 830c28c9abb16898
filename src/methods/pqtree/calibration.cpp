// Recall by candidates: the true neighbours among the proposals that are ranked by vectors.
#include "methods/pqtree/calibration.h"

#include <algorithm>
#include <limits>

#include "methods/recall/curve.h"
#include "methods/recall/gain.h"
#include "methods/recall/searches.h"
#include "methods/rows/place_table.h"
#include "numeric/sample.h"
#include "protocol/calibration.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t fewest_sampled = 160;
constexpr std::size_t most_sampled = 400;
constexpr std::size_t rows_per_sampled = 500;
constexpr std::size_t fewest_measured = 64;
constexpr std::size_t all_measured_up_to = 700;  // candidates
// More candidates are not worth measuring. A few queries that miss nothing prove no more for ten rows.
constexpr float enough_recall[4] = {0, 0.995F, 0.9985F, 0.95F};
// Where some of the candidates do not reach this recall, line codes order rows badly.
constexpr float usual_recall = 0.95F;
constexpr GainRule line_code_gain = {.steps = 2, .from = 16384};

// Returns the number of proposals that vectors rank in a search for k rows: the index's own, or the heap's.
std::size_t ranked_for(const TreeOptions& options, std::size_t rows, std::int64_t effort, std::uint32_t k)
{
    SearchBatch batch;
    batch.effort = effort;
    if (options.keeps_vectors()) {
        batch.k = k;
        return search_plan(options, rows, batch).ranked;
    }
    return search_width({ResultKind::approximate}, k);
}

// The plan that proposes the rows that searches of every k rank.
SearchPlan plan_for_all(const TreeOptions& options, std::size_t rows, std::int64_t effort, std::size_t ranked)
{
    SearchBatch batch;
    batch.effort = effort;
    batch.k = 1;
    SearchPlan plan = search_plan(options, rows, batch);
    plan.ranked = std::min(ranked, rows);
    return plan;
}

bool finds_enough(const Calibration& so_far)
{
    if (so_far.count == 0) return false;
    const float* recall = so_far.points[so_far.count - 1].recall;
    for (std::size_t column = 0; column < 4; ++column)
        if (recall[column] >= 0 && recall[column] < enough_recall[column]) return false;
    return true;
}

// Searches for one row and for ten look at the same proposals, and a nearer neighbour is found no less often. So ten
// neighbours of each query tell more of the nearest than the nearest itself.
Calibration with_nearest(Calibration curve)
{
    for (std::uint32_t i = 0; i < curve.count; ++i)
        curve.points[i].recall[0] = std::max(curve.points[i].recall[0], curve.points[i].recall[1]);
    return curve;
}

// Returns the recall of the last effort that does not take all rows: of ten rows, or of one in a very small index.
float recall_of_candidates(const Calibration& curve)
{
    if (curve.count < 2) return 1;
    const float* recall = curve.points[curve.count - 2].recall;
    return recall[1] >= 0 ? recall[1] : recall[0];
}

}  // namespace

std::size_t tree_calibration_sample(std::size_t rows)
{
    return std::clamp(rows / rows_per_sampled, fewest_sampled, most_sampled);
}

TreeMeasurement measure_tree(const TreeOptions& options, const TreeProposer& proposer, std::size_t rows,
                             const CalibrationSample& sample, const BuildProgress& progress, ThreadPool& pool)
{
    const auto with_share = [&](std::size_t share) {
        TreeOptions ranking = options;
        ranking.ranked_share = share;
        return TreeMeasurement{TreeCalibration{ranking, proposer, rows, sample}.run(progress, pool), share};
    };
    const TreeMeasurement usual = with_share(usual_ranked_share);
    if (!options.keeps_vectors() || recall_of_candidates(usual.curve) >= usual_recall) return usual;
    // Vectors may order the rows that line codes do not.
    const TreeMeasurement ranked = with_share(1);
    return recall_of_candidates(ranked.curve) > recall_of_candidates(usual.curve) ? ranked : usual;
}

Calibration TreeCalibration::run(const BuildProgress& progress, ThreadPool& pool) const
{
    const std::vector<std::int64_t> schedule = candidate_schedule(rows);
    RecallCurve curve(sample.rows.size());
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        progress.advance("calibrating", i, schedule.size());
        if (i + 1 == schedule.size() || finds_enough(curve.calibration())) break;
        if (!options.keeps_vectors() && has_stopped_gaining(curve.calibration(), line_code_gain))
            return with_nearest(curve.calibration());
        curve.add(schedule[i], shares_at(schedule[i], pool, progress.cancel));
    }
    // The last effort takes all rows, by their vectors or by line codes.
    if (options.keeps_vectors()) {
        curve.add_complete(schedule.back(), all_found());
    } else {
        curve.add(schedule.back(), shares_at(schedule.back(), pool, progress.cancel));
    }
    return with_nearest(curve.calibration());
}

// Returns the numbers of the queries that an effort is measured with: fewer for many candidates, whose recall varies
// less. Samples ascend by row, so the first in that order are spread over all rows.
std::vector<std::uint32_t> TreeCalibration::measured_queries(std::int64_t effort) const
{
    std::vector<std::uint32_t> numbers = spread_numbers(sample.rows.size());
    const std::size_t affordable = sample.rows.size() * all_measured_up_to / static_cast<std::size_t>(effort);
    numbers.resize(std::clamp(affordable, std::min(fewest_measured, sample.rows.size()), sample.rows.size()));
    return numbers;
}

// One search proposes the rows that searches of every k rank.
RecallCurve::Shares TreeCalibration::shares_at(std::int64_t effort, ThreadPool& pool, const CancelToken* cancel) const
{
    const std::vector<std::uint32_t> numbers = measured_queries(effort);
    const std::size_t dimensions = sample.queries.size() / sample.rows.size();
    const std::vector<float> some = gather_rows(sample.queries.data(), dimensions, numbers);
    const std::size_t most_ranked = ranked_for(options, rows, effort, Calibration::ks[3]);
    std::vector<std::vector<Candidate>> proposed;
    proposer.propose(some, plan_for_all(options, rows, effort, most_ranked + 1), sample.dead, proposed, pool, cancel);
    std::vector<std::vector<std::size_t>> places(numbers.size());
    pool.parallel_for(numbers.size(), 4, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) places[i] = places_of(numbers[i], proposed[i]);
    });
    // One more query missed one neighbour, because a small sample without a miss proves no perfect recall.
    RecallCurve::Shares shares(sample.rows.size() + 1, {-1, -1, -1, -1});
    for (std::size_t column = 0; column < 4; ++column) {
        const std::vector<float> found = worst_shares(column, effort, places);
        for (std::size_t i = 0; i < found.size(); ++i) shares[numbers[i]][column] = found[i];
        if (!found.empty()) shares.back()[column] = 1 - 1.0F / static_cast<float>(Calibration::ks[column]);
    }
    return shares;
}

// A column's effort serves every k above that of the column before, so its recall is that of the worst of two k. Where
// searches rank the same number of rows for several k, that is the largest of these and not the smallest.
std::vector<float> TreeCalibration::worst_shares(std::size_t column, std::int64_t effort,
                                                 std::span<const std::vector<std::size_t>> places) const
{
    std::vector<float> worst;
    const auto width = [&](std::uint32_t k) { return ranked_for(options, rows, effort, k); };
    for (const std::uint32_t k : measured_ks(column, rows - 1, width, 1)) {
        const std::size_t ranked = width(k);
        std::vector<float> shares;
        for (const std::vector<std::size_t>& of_query : places) {
            const auto wanted = std::span(of_query).first(std::min<std::size_t>(k, of_query.size()));
            const auto found = std::ranges::count_if(wanted, [ranked](std::size_t place) { return place < ranked; });
            shares.push_back(static_cast<float>(found) / static_cast<float>(std::max<std::size_t>(1, wanted.size())));
        }
        if (worst.empty() || mean_of(shares) < mean_of(worst)) worst = shares;
    }
    return worst;
}

// Returns the place of each true neighbour among the proposals of a query, without its own row.
std::vector<std::size_t> TreeCalibration::places_of(std::size_t query, std::span<const Candidate> proposed) const
{
    thread_local PlaceTable numbers;
    numbers.assign(sample.truth[query]);
    std::vector<std::size_t> places(sample.truth[query].size(), std::numeric_limits<std::size_t>::max());
    std::size_t place = 0;
    for (const Candidate& one : proposed) {
        if (one.row == sample.rows[query]) continue;
        const std::uint32_t number = numbers.place_of(one.row);
        if (number != PlaceTable::none) places[number] = place;
        ++place;
    }
    return places;
}

RecallCurve::Shares TreeCalibration::all_found() const
{
    RecallCurve::Shares shares(sample.rows.size() + 1, {-1, -1, -1, -1});
    for (std::size_t column = 0; column < 4; ++column) {
        if (column > 0 && rows - 1 <= Calibration::ks[column - 1]) continue;
        for (auto& of_query : shares) of_query[column] = 1;
    }
    return shares;
}

}  // namespace pgwarp
