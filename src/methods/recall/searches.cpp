// Recall along efforts, by searches of any searcher.
#include "methods/recall/searches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "methods/recall/curve.h"
#include "methods/recall/gain.h"
#include "methods/rows/place_table.h"
#include "numeric/sample.h"
#include "protocol/calibration.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_held_out = 400;
constexpr std::size_t fewest_measured = 40;   // queries
constexpr std::int64_t widest_with_all = 96;  // the largest effort that is measured with all queries
constexpr std::size_t queries_at_a_time = 8;  // of a thread that counts found neighbours
constexpr double enough_recall = 0.9985;      // more effort is not worth measuring
constexpr double most_moved = 1.15;           // factor between an effort and the width that takes its place

// Where values are estimates, recall is limited to the candidates that the backend ranks. Wider searches are not
// measured when recall has not risen over this many points, the hundred nearest rows included.
constexpr std::uint32_t points_without_gain = 3;

using Shares = std::vector<std::array<float, 4>>;
using Results = std::vector<std::vector<RowResult>>;

constexpr std::uint32_t no_row = 0xffffffff;

// Returns the share of the true neighbours among the first `width` results without the query's own row; negative
// without true neighbours.
float share_found(std::span<const RowResult> results, std::span<const std::uint32_t> truth, std::uint32_t own,
                  std::size_t width)
{
    if (truth.empty()) return -1;
    thread_local PlaceTable places;
    places.assign(truth);
    std::size_t compared = 0;
    std::size_t hits = 0;
    for (const RowResult& result : results) {
        if (compared == width) break;
        if (result.row == own) continue;
        ++compared;
        hits += places.place_of(result.row) != PlaceTable::none ? 1 : 0;
    }
    return static_cast<float>(hits) / static_cast<float>(truth.size());
}

// The same by distance: a result no farther than the last true neighbour is found.
float share_as_near(std::span<const RowResult> results, std::span<const double> truth, std::size_t k)
{
    const std::size_t count = std::min(k, truth.size());
    if (count == 0) return -1;
    const double farthest = truth[count - 1];
    const auto near = [farthest](const RowResult& result) { return result.distance <= farthest; };
    const auto found = results.first(std::min(count, results.size()));
    return static_cast<float>(std::count_if(found.begin(), found.end(), near)) / static_cast<float>(count);
}

std::uint32_t reversed_bits(std::uint32_t number)
{
    constexpr std::uint32_t masks[] = {0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff};
    for (std::uint32_t step = 0; step < 5; ++step)
        number = (number >> (1U << step) & masks[step]) | (number & masks[step]) << (1U << step);
    return number;
}

// A column's effort serves every k from the column before up to its own. At one effort recall may rise or fall with k:
// it falls where rows are missed along the way, and rises where the search is as wide as k asks for or where estimates
// limit it; where clusters hold fewer rows than k it does both. So each column is measured at several k, and its recall
// is that of the worst of them.
class Measurement
{
public:
    Measurement(const RecallInput& input, const RecallRules& rules, const BuildProgress& progress, ThreadPool& pool)
        : input_(input), rules_(rules), dead_version_(new_bitmap_version()), progress_(progress), pool_(pool)
    {
        for (std::size_t column = 0; column < 4; ++column)
            ks_[column] = measured_ks(
                column, input.rows, [this](std::uint32_t k) { return width(k); }, rules.steps_of_k);
        efforts_ = rules.effort_is_width ? efforts_at_widths() : rules.efforts;
        spread_queries();
    }

    Calibration run()
    {
        RecallCurve curve(input_.truth.size());
        for (std::size_t i = 0; i < efforts_.size(); ++i) {
            progress_.report("calibrating", i, efforts_.size());
            measure(efforts_[i]);
            curve.add(efforts_[i], shares_);
            if (is_enough(curve.calibration())) break;
        }
        return curve.calibration();
    }

private:
    ResultKind kind() const { return input_.searcher.result_kind(); }
    std::size_t width(std::size_t k) const { return search_width({kind()}, static_cast<std::uint32_t>(k)); }

    // Samples ascend by row. In the order of their reversed bits (van der Corput), any first queries are spread over
    // all rows.
    void spread_queries()
    {
        numbers_ = spread_numbers(input_.truth.size());
        if (!numbers_.empty())
            queries_ = gather_rows(input_.queries.data(), input_.queries.size() / numbers_.size(), numbers_);
    }

    // The widths of the measured k take the place of the efforts near them, because these searches are made anyhow. The
    // last effort stays: the rules end where searches find all they can.
    std::vector<std::int64_t> efforts_at_widths() const
    {
        std::vector<std::int64_t> efforts = rules_.efforts;
        if (efforts.empty()) return efforts;
        const std::int64_t last = efforts.back();
        efforts.pop_back();
        for (const std::vector<std::uint32_t>& ks : ks_) {
            for (const std::uint32_t k : ks) {
                const double wanted = static_cast<double>(width(k));
                const auto apart = [wanted](std::int64_t effort) {
                    return std::abs(std::log(static_cast<double>(effort) / wanted));
                };
                const auto nearest = std::ranges::min_element(efforts, {}, apart);
                if (nearest != efforts.end() && apart(*nearest) < std::log(most_moved))
                    *nearest = static_cast<std::int64_t>(wanted);
            }
        }
        efforts.push_back(last);
        std::ranges::sort(efforts);
        const auto repeated = std::ranges::unique(efforts);
        efforts.erase(repeated.begin(), repeated.end());
        return efforts;
    }

    // Measures all columns at an effort into shares_.
    void measure(std::int64_t effort)
    {
        const Shares before = std::exchange(shares_, Shares(input_.truth.size(), {-1, -1, -1, -1}));
        const Results& widest = rules_.effort_is_width ? results_at(effort) : no_results_;
        for (std::size_t column = 0; column < 4; ++column) {
            if (!rules_.effort_is_width && finds_enough(before, column)) {
                for (std::size_t q = 0; q < shares_.size(); ++q) shares_[q][column] = before[q][column];
                continue;
            }
            std::vector<float> worst;
            for (const std::uint32_t k : ks_[column]) {
                const std::vector<float> of_k = shares_at(effort, k, widest);
                if (worst.empty() || mean_of(of_k) < mean_of(worst)) worst = of_k;
            }
            for (std::size_t q = 0; q < worst.size(); ++q) shares_[q][column] = worst[q];
        }
        results_.erase(effort);
    }

    std::vector<float> shares_at(std::int64_t effort, std::uint32_t k, const Results& widest)
    {
        const std::size_t own = input_.own_rows.empty() ? 0 : 1;
        if (!rules_.effort_is_width) return shares_of(search(effort, width(k) + own, input_.truth.size()), k);
        return is_wide(k, effort) ? narrow(k) : shares_of(widest, k);
    }

    static bool finds_enough(const Shares& shares, std::size_t column)
    {
        double sum = 0;
        for (const auto& share : shares) sum += share[column];
        return !shares.empty() &&
               (shares.front()[column] < 0 || sum >= enough_recall * static_cast<double>(shares.size()));
    }

    bool is_enough(const Calibration& so_far) const
    {
        if (!rules_.effort_is_width) {
            if (rules_.gains_from > 0 && kind() == ResultKind::approximate &&
                has_stopped_gaining(so_far, {.steps = points_without_gain, .from = rules_.gains_from}))
                return true;
            for (std::size_t column = 0; column < 4; ++column)
                if (!finds_enough(shares_, column)) return false;
            return true;
        }
        const float* recall = so_far.points[so_far.count - 1].recall;
        const auto enough = [](float at_k) { return at_k < 0 || at_k >= static_cast<float>(enough_recall); };
        return std::all_of(recall, recall + 4, enough) || widths_gain_nothing(so_far);
    }

    bool widths_gain_nothing(const Calibration& so_far) const
    {
        if (kind() != ResultKind::approximate) return false;
        const std::size_t least = ks_[2].empty() ? 0 : width(Calibration::ks[2]);
        return has_stopped_gaining(
            so_far, {.steps = points_without_gain, .from = static_cast<std::int64_t>(least), .columns = 3});
    }

    // Whether a search for k rows returns more rows than the effort keeps.
    bool is_wide(std::size_t k, std::int64_t effort) const { return static_cast<std::size_t>(effort) < width(k); }

    // Returns the width of the largest measured k that the effort suffices for.
    std::size_t widest_within(std::int64_t effort) const
    {
        std::size_t widest = width(1);
        for (const std::vector<std::uint32_t>& ks : ks_) {
            for (const std::uint32_t k : ks)
                if (!is_wide(k, effort)) widest = std::max(widest, width(k));
        }
        return widest;
    }

    std::size_t queries_of(std::int64_t effort) const
    {
        const std::size_t all = input_.truth.size();
        return std::clamp<std::size_t>(
            all * static_cast<std::size_t>(widest_with_all) / static_cast<std::size_t>(effort),
            std::min(fewest_measured, all), all);
    }

    // Efforts below the width of k all search the same; this search is made once.
    const std::vector<float>& narrow(std::size_t k)
    {
        std::vector<float>& shares = narrow_[k];
        if (shares.empty()) shares = shares_of(results_at(static_cast<std::int64_t>(width(k))), k);
        return shares;
    }

    // The results for the largest measured k that the effort suffices for, kept until the effort itself is measured.
    const Results& results_at(std::int64_t effort)
    {
        const auto [place, is_new] = results_.try_emplace(effort);
        if (is_new) place->second = search(effort, widest_within(effort), queries_of(effort));
        return place->second;
    }

    Results search(std::int64_t effort, std::size_t k, std::size_t queries) const
    {
        SearchBatch batch;
        batch.queries = queries_;
        batch.count = queries;
        batch.k = static_cast<std::uint32_t>(k);
        batch.effort = effort;
        batch.dead = input_.dead;
        batch.dead_version = dead_version_;
        batch.cancel = progress_.cancel;
        Results results;
        input_.searcher.search(batch, results, pool_);
        return results;
    }

    float share_of(std::uint32_t number, std::span<const RowResult> results, std::size_t k) const
    {
        if (!input_.distances.empty()) return share_as_near(results, input_.distances[number], k);
        // With fewer true neighbours than k, only the results of a search for that number count.
        const auto truth = std::span(input_.truth[number]).first(std::min(k, input_.truth[number].size()));
        const std::uint32_t own = input_.own_rows.empty() ? no_row : input_.own_rows[number];
        return share_found(results, truth, own, width(truth.size()));
    }

    std::vector<float> shares_of(const Results& results, std::size_t k) const
    {
        std::vector<float> shares(results.size());
        pool_.parallel_for(shares.size(), queries_at_a_time, [&](std::size_t begin, std::size_t end) {
            for (std::size_t q = begin; q < end; ++q) shares[q] = share_of(numbers_[q], results[q], k);
        });
        return shares;
    }

    const RecallInput& input_;
    const RecallRules& rules_;
    const std::uint64_t dead_version_;
    const BuildProgress& progress_;
    ThreadPool& pool_;
    std::vector<std::uint32_t> numbers_;                // of the queries in the input
    std::vector<float> queries_;                        // in the order of numbers_
    std::array<std::vector<std::uint32_t>, 4> ks_;      // measured in each column
    std::vector<std::int64_t> efforts_;                 // that are measured, ascending
    Shares shares_;                                     // of the last effort
    std::map<std::size_t, std::vector<float>> narrow_;  // by k
    std::map<std::int64_t, Results> results_;           // by effort
    const Results no_results_;
};

}  // namespace

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

std::vector<std::uint32_t> spread_numbers(std::size_t count)
{
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::ranges::sort(numbers, {}, reversed_bits);
    return numbers;
}

std::size_t held_out_sample(std::size_t rows)
{
    return std::min(rows / 5, most_held_out);
}

Calibration measure_recall(const RecallInput& input, const RecallRules& rules, const BuildProgress& progress,
                           ThreadPool& pool)
{
    return Measurement(input, rules, progress, pool).run();
}

std::vector<std::uint32_t> measured_ks(std::size_t column, std::size_t rows,
                                       const std::function<std::size_t(std::uint32_t)>& width, std::size_t steps)
{
    if (column > 0 && rows <= Calibration::ks[column - 1]) return {};
    const std::uint32_t least = column == 0 ? 1 : Calibration::ks[column - 1] + 1;
    const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, least, Calibration::ks[column]));
    const double factor = static_cast<double>(most) / least;
    std::vector<std::uint32_t> ks;
    for (std::size_t step = 0; step <= steps; ++step) {
        const double share = static_cast<double>(step) / static_cast<double>(steps);
        auto k = std::min(most, static_cast<std::uint32_t>(std::lround(least * std::pow(factor, share))));
        while (k < most && width(k + 1) == width(k)) ++k;
        if (ks.empty() || ks.back() < k) ks.push_back(k);
    }
    return ks;
}

void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step)
{
    std::vector<std::byte> piece;
    for (const ArrayShape& array : builder.arrays()) {
        for (std::uint64_t offset = 0; offset < array.bytes(); offset += step) {
            piece.resize(std::min(step, array.bytes() - offset));
            builder.read(array.name, offset, piece);
            searcher.write(array.name, offset, piece);
        }
    }
    searcher.finish_load(pool);
}

}  // namespace pgwarp
