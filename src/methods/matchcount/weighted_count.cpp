// Weighted match counts: proposals by sums in fixed point, then canonical scores of the proposed rows.
#include "methods/matchcount/weighted_count.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "methods/errors.h"

namespace pgwarp::matchcount
{

WeightedLists::WeightedLists(const WeightedRows& rows, ThreadPool& pool)
    : keywords_(rows.rows, pool), weights_(keywords_.postings()), largest_(keywords_.list_count())
{
    // Rows come in order, so each posting has the next place of its list.
    std::vector<std::uint32_t> counts(keywords_.list_count());
    for (std::uint64_t i = 0; i < keywords_.postings(); ++i) {
        const float weight = rows.weights[i];
        if (!std::isfinite(weight)) throw BadRequest("a weight of a row is not finite");
        const std::uint32_t keyword = rows.rows.keywords[i];
        const std::size_t number = keywords_.numbers({keyword, keyword}).first;
        weights_[keywords_.start(number) + counts[number]++] = weight;
        largest_[number] = std::max(largest_[number], std::abs(weight));
    }
}

WeightedLists::List WeightedLists::list(std::uint32_t keyword) const
{
    const KeywordLists::Numbers numbers = keywords_.numbers({keyword, keyword});
    if (numbers.first == numbers.last) return {};
    const std::span<const std::uint32_t> rows = keywords_.lists(numbers);
    return {rows, std::span(weights_).subspan(keywords_.start(numbers.first), rows.size()), largest_[numbers.first]};
}

namespace
{

// The largest exponent e for which bound * 2^e <= limit.
int largest_exponent(double bound, double limit)
{
    int exponent = std::ilogb(limit) - std::ilogb(bound);
    while (std::ldexp(bound, exponent) > limit) --exponent;
    return exponent;
}

void choose_scale(const WeightedLists& lists, std::span<const WeightedItem> items, FixedPointScores& scores)
{
    const std::uint64_t repeats = lists.keywords().most_repeats();
    std::uint64_t addends = 0;
    double bound = 0;
    for (const WeightedItem& item : items) {
        if (!std::isfinite(item.weight)) throw BadRequest("a weight of a query is not finite");
        const WeightedLists::List list = lists.list(item.keyword);
        if (list.rows.empty()) continue;
        addends += repeats;
        bound += std::abs(double{item.weight}) * list.largest * static_cast<double>(repeats);
    }
    if (addends >= std::uint64_t{1} << 30) throw BadRequest("a row may match more than 2^30 elements");
    scores.most_addends = static_cast<std::uint32_t>(addends);
    // The sum of less than 2^30 numbers has a relative error of less than 2^-22.
    bound *= 1 + 0x1p-20;
    const double limit = 0x1p31 - 1 - static_cast<double>((addends + 1) / 2);
    if (bound > 0) scores.exponent = largest_exponent(bound, limit);
}

// Returns the k-th largest sum of the live rows; the smallest number where there are fewer.
std::int64_t kth_largest(std::span<const std::int32_t> sums, std::size_t k, RowBitmap dead)
{
    std::vector<std::int32_t> heap;  // the smallest first
    for (std::size_t row = 0; row < sums.size(); ++row) {
        if ((heap.size() == k && sums[row] <= heap.front()) || bit_is_set(dead, row)) continue;
        if (heap.size() == k) {
            std::pop_heap(heap.begin(), heap.end(), std::greater<>());
            heap.pop_back();
        }
        heap.push_back(sums[row]);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    return heap.size() == k ? heap.front() : std::numeric_limits<std::int64_t>::min();
}

// Returns the rows that an item matches.
std::vector<std::uint64_t> matched_rows(const WeightedLists& lists, std::span<const WeightedItem> items)
{
    std::vector<std::uint64_t> matched((std::size_t{lists.keywords().rows()} + 63) / 64);
    for (const WeightedItem& item : items)
        for (const std::uint32_t row : lists.list(item.keyword).rows) set_bit(matched, row);
    return matched;
}

// Returns live rows among which are the k best by canonical scores, ascending. Canonical scores have errors as well:
// less than most_addends * B * 2^-53, so less than most_addends * 2^-22 in units of the sums. A row whose sum is
// smaller than that of k others by more than most_addends * (1 + 2^-21) has a smaller canonical score than these.
std::vector<ScoredRow> propose(const FixedPointScores& scores, const WeightedLists& lists,
                               std::span<const WeightedItem> items, std::uint32_t k, RowBitmap dead)
{
    const std::int64_t kth = kth_largest(scores.sums, k, dead);
    const std::int64_t slack = std::int64_t{scores.most_addends} + (scores.most_addends >> 20) + 1;
    const bool few = kth == std::numeric_limits<std::int64_t>::min();
    const std::int64_t least = few ? kth : kth - slack;
    // Of the rows that nothing matches, which all have the score 0, the first k will do.
    std::vector<std::uint64_t> matched;
    if (least <= 0) matched = matched_rows(lists, items);
    std::vector<ScoredRow> proposed;
    std::uint32_t unmatched = 0;
    for (std::uint32_t row = 0; row < scores.sums.size(); ++row) {
        if (scores.sums[row] < least || bit_is_set(dead, row)) continue;
        if (least > 0 || bit_is_set(matched, row) || unmatched++ < k) proposed.push_back({row, 0});
    }
    return proposed;
}

// Adds the canonical scores to rows that are sorted.
void add_canonical_scores(const WeightedLists& lists, std::span<const WeightedItem> items, std::span<ScoredRow> rows)
{
    std::vector<WeightedItem> sorted(items.begin(), items.end());
    std::sort(sorted.begin(), sorted.end(), [](const WeightedItem& a, const WeightedItem& b) {
        return a.keyword != b.keyword ? a.keyword < b.keyword : a.weight < b.weight;
    });
    for (const WeightedItem& item : sorted) {
        const WeightedLists::List list = lists.list(item.keyword);
        auto at = list.rows.begin();
        for (ScoredRow& row : rows) {
            at = std::lower_bound(at, list.rows.end(), row.row);
            for (; at != list.rows.end() && *at == row.row; ++at)
                row.score += double{item.weight} * list.weights[static_cast<std::size_t>(at - list.rows.begin())];
        }
    }
}

}  // namespace

FixedPointScores fixed_point_scale(const WeightedLists& lists, std::span<const WeightedItem> items)
{
    FixedPointScores scores;
    choose_scale(lists, items, scores);
    return scores;
}

bool scale_item(const WeightedLists& lists, const WeightedItem& item, int exponent, std::size_t* number, double* weight)
{
    if (lists.list(item.keyword).largest == 0) return false;  // the scale is not made for such an item
    *number = lists.keywords().numbers({item.keyword, item.keyword}).first;
    *weight = std::ldexp(double{item.weight}, exponent);
    return true;
}

FixedPointScores fixed_point_scores(const WeightedLists& lists, std::span<const WeightedItem> items)
{
    FixedPointScores scores = fixed_point_scale(lists, items);
    scores.sums.resize(lists.keywords().rows());
    for (const WeightedItem& item : items) {
        std::size_t number = 0;
        double weight = 0;
        if (!scale_item(lists, item, scores.exponent, &number, &weight)) continue;
        const WeightedLists::List list = lists.list(item.keyword);
        for (std::size_t i = 0; i < list.rows.size(); ++i)
            scores.sums[list.rows[i]] += static_cast<std::int32_t>(std::nearbyint(weight * list.weights[i]));
    }
    return scores;
}

std::vector<ScoredRow> search_weighted(const WeightedLists& lists, std::span<const WeightedItem> items, std::uint32_t k,
                                       RowBitmap dead)
{
    const FixedPointScores scores = fixed_point_scores(lists, items);
    if (k == 0) return {};
    std::vector<ScoredRow> rows = propose(scores, lists, items, k, dead);
    add_canonical_scores(lists, items, rows);
    std::sort(rows.begin(), rows.end(), [](const ScoredRow& a, const ScoredRow& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
    });
    if (rows.size() > k) rows.resize(k);
    return rows;
}

}  // namespace pgwarp::matchcount
