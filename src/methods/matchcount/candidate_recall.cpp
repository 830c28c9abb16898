// Ranks of true neighbours, and the curve that they make.
#include "methods/matchcount/candidate_recall.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "methods/recall/curve.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t depth = Calibration::ks[3];

// The numbers of candidates that are measured: steps of a third, up to all rows.
std::vector<std::size_t> candidate_schedule(std::size_t rows)
{
    const std::size_t most = std::clamp<std::size_t>(rows, 1, max_k);
    std::vector<std::size_t> schedule;
    for (double next = 10; next < static_cast<double>(most) && schedule.size() + 1 < Calibration::capacity;
         next = std::floor(next * 1.33))
        schedule.push_back(static_cast<std::size_t>(next));
    schedule.push_back(most);
    return schedule;
}

// Returns how often of each number of tosses a coin falls on its head.
std::vector<double> binomial_chances(std::size_t tosses, double chance)
{
    const auto n = static_cast<double>(tosses);
    std::vector<double> chances(tosses + 1);
    if (chance >= 1) {
        chances.back() = 1;
        return chances;
    }
    for (std::size_t i = 0; i <= tosses; ++i) {
        const auto heads = static_cast<double>(i);
        chances[i] = std::exp(std::lgamma(n + 1) - std::lgamma(heads + 1) - std::lgamma(n - heads + 1) +
                              heads * std::log(chance) + (n - heads) * std::log1p(-chance));
    }
    return chances;
}

}  // namespace

void CandidateRecall::Query::add(const Near& row)
{
    ++rows_of_count[row.count];
    if (nearest.size() < depth) {
        nearest.push_back(row);
        std::push_heap(nearest.begin(), nearest.end());
    } else if (row < nearest.front()) {
        std::pop_heap(nearest.begin(), nearest.end());
        nearest.back() = row;
        std::push_heap(nearest.begin(), nearest.end());
    }
}

CandidateRecall::CandidateRecall(std::size_t functions, std::vector<std::uint32_t> own)
    : own_(std::move(own)), queries_(own_.size())
{
    for (Query& query : queries_) query.rows_of_count.resize(functions + 1);
}

void CandidateRecall::add(std::size_t query, std::span<const float> scores, std::span<const std::uint16_t> counts,
                          std::size_t first, RowBitmap dead)
{
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (first + i != own_[query] && !bit_is_set(dead, first + i))
            queries_[query].add({scores[i], static_cast<std::uint32_t>(first + i), counts[i]});
    }
}

bool CandidateRecall::has_counted(std::size_t query, const CountedNeighbours& counted) const
{
    return std::ranges::any_of(queries_[query].nearest, [&](const Near& row) { return row.score <= counted.farthest; });
}

// Returns for each count the number of rows of a larger one.
std::vector<std::uint32_t> CandidateRecall::Query::rows_above() const
{
    std::vector<std::uint32_t> above(rows_of_count.size());
    for (std::size_t count = above.size() - 1; count > 0; --count)
        above[count - 1] = above[count] + rows_of_count[count];
    return above;
}

// Returns the ranks of the true neighbours that count, nearest first. Rows of equal count are candidates in an order
// that says nothing: of n such rows, g at the same distance, the j-th of these is expected at the rank (j + 1) (n + 1)
// / (g + 1) - 1 among them.
std::vector<double> CandidateRecall::ranks_of(const Query& query, float farthest)
{
    const std::vector<std::uint32_t> above = query.rows_above();
    std::vector<Near> nearest = query.nearest;
    std::sort_heap(nearest.begin(), nearest.end());
    std::vector<double> ranks;
    for (std::size_t first = 0, end = 0; first < nearest.size() && nearest[first].score <= farthest; first = end) {
        const Near& row = nearest[first];
        while (end < nearest.size() && nearest[end].score == row.score && nearest[end].count == row.count) ++end;
        const double step = (query.rows_of_count[row.count] + 1.0) / static_cast<double>(end - first + 1);
        for (std::size_t j = 1; j <= end - first; ++j)
            ranks.push_back(above[row.count] + static_cast<double>(j) * step - 1);
    }
    return ranks;
}

std::vector<CandidateRecall::Place> CandidateRecall::places_of(const Query& query, double collision_chance)
{
    const std::vector<double> chances = binomial_chances(query.rows_of_count.size() - 1, collision_chance);
    const std::vector<std::uint32_t> above = query.rows_above();
    std::vector<Place> places;
    for (std::size_t count = 0; count < chances.size(); ++count)
        places.push_back(
            {chances[count], static_cast<double>(above[count]), static_cast<double>(query.rows_of_count[count])});
    return places;
}

std::vector<CandidateRecall::Measured> CandidateRecall::measure(std::span<const CountedNeighbours> counted) const
{
    std::vector<Measured> measured(queries_.size());
    std::size_t known = 0;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
        const float farthest = counted.empty() ? std::numeric_limits<float>::infinity() : counted[q].farthest;
        measured[q].ranks = ranks_of(queries_[q], farthest);
        known += !measured[q].ranks.empty();
    }
    for (std::size_t q = 0; q < counted.size() && known < fewest_measured_queries; ++q) {
        if (!measured[q].ranks.empty()) continue;
        measured[q].places = places_of(queries_[q], counted[q].collision_chance);
        ++known;
    }
    return measured;
}

// The share of the k nearest that count, k as in Calibration::ks, among the candidates; `others`: the rows beside
// the query. A search for more rows than candidates compares more, but the curve takes a nearer row for one that is
// found no less often at an equal effort.
CandidateRecall::Shares CandidateRecall::shares_within(const Measured& query, std::size_t candidates,
                                                       std::size_t others)
{
    const auto compared = static_cast<double>(candidates);
    double of_made_up = 0;
    for (const Place& place : query.places)
        of_made_up += place.chance * std::clamp((compared - place.above) / (place.equal + 1), 0.0, 1.0);
    Shares shares{-1, -1, -1, -1};
    for (std::size_t column = 0; column < 4; ++column) {
        // A search for more rows than there are finds all.
        if (column > 0 && others <= Calibration::ks[column - 1]) continue;
        const std::size_t k = std::min<std::size_t>(Calibration::ks[column], query.ranks.size());
        if (!query.places.empty()) shares[column] = static_cast<float>(of_made_up);
        if (k == 0) continue;
        const auto found = std::count_if(query.ranks.begin(), query.ranks.begin() + static_cast<std::ptrdiff_t>(k),
                                         [compared](double rank) { return rank < compared; });
        shares[column] = static_cast<float>(found) / static_cast<float>(k);
    }
    return shares;
}

Calibration CandidateRecall::curve(std::size_t rows, std::span<const CountedNeighbours> counted) const
{
    RecallCurve curve(queries_.size(), true);
    const std::vector<Measured> measured = measure(counted);
    const std::size_t others = rows > 0 ? rows - 1 : 0;
    for (const std::size_t candidates : candidate_schedule(rows)) {
        std::vector<Shares> shares;
        for (const Measured& query : measured) shares.push_back(shares_within(query, candidates, others));
        const auto effort = static_cast<std::int64_t>(candidates);
        candidates >= rows ? curve.add_complete(effort, shares) : curve.add(effort, shares);
    }
    return curve.calibration();
}

std::size_t live_rows(std::size_t first, std::size_t count, RowBitmap dead)
{
    std::size_t live = 0;
    for (std::size_t row = first; row < first + count; ++row) live += !bit_is_set(dead, row);
    return live;
}

}  // namespace pgwarp::matchcount
