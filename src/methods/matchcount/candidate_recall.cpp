// Ranks of true neighbours, and the curve that they make.
#include "methods/matchcount/candidate_recall.h"

#include <algorithm>
#include <array>
#include <cmath>

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

// The share of the k nearest, k as in Calibration::ks, among the candidates; ranks of the nearest first. A search for
// more rows than candidates compares more, but the curve takes a nearer row for one that is found no less often at an
// equal effort.
std::array<float, 4> shares_within(const std::vector<double>& ranks, std::size_t candidates)
{
    std::array<float, 4> shares{-1, -1, -1, -1};
    for (std::size_t column = 0; column < 4; ++column) {
        // A search for more rows than there are finds all.
        if (column > 0 && ranks.size() <= Calibration::ks[column - 1]) continue;
        const std::size_t k = std::min<std::size_t>(Calibration::ks[column], ranks.size());
        if (k == 0) continue;
        const auto found = std::count_if(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(k),
                                         [candidates](double rank) { return rank < static_cast<double>(candidates); });
        shares[column] = static_cast<float>(found) / static_cast<float>(k);
    }
    return shares;
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

// Returns the ranks of the true neighbours, nearest first. Rows of equal count are candidates in an order that says
// nothing: of n such rows, g at the same distance, the j-th of these is expected at the rank (j + 1) (n + 1) / (g + 1)
// - 1 among them.
std::vector<double> CandidateRecall::ranks_of(const Query& query) const
{
    std::vector<std::uint32_t> above(query.rows_of_count.size());  // rows of a larger count
    for (std::size_t count = above.size() - 1; count > 0; --count)
        above[count - 1] = above[count] + query.rows_of_count[count];
    std::vector<Near> nearest = query.nearest;
    std::sort_heap(nearest.begin(), nearest.end());
    std::vector<double> ranks;
    for (std::size_t first = 0, end = 0; first < nearest.size(); first = end) {
        const Near& row = nearest[first];
        while (end < nearest.size() && nearest[end].score == row.score && nearest[end].count == row.count) ++end;
        const double step = (query.rows_of_count[row.count] + 1.0) / static_cast<double>(end - first + 1);
        for (std::size_t j = 1; j <= end - first; ++j)
            ranks.push_back(above[row.count] + static_cast<double>(j) * step - 1);
    }
    return ranks;
}

Calibration CandidateRecall::curve(std::size_t rows) const
{
    RecallCurve curve(queries_.size(), true);
    std::vector<std::vector<double>> ranks;
    for (const Query& query : queries_) ranks.push_back(ranks_of(query));
    for (const std::size_t candidates : candidate_schedule(rows)) {
        std::vector<std::array<float, 4>> shares;
        for (const std::vector<double>& of_query : ranks) shares.push_back(shares_within(of_query, candidates));
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
