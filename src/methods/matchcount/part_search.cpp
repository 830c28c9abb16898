// The search by overlap and by the Jaccard distance of sets.
#include "methods/matchcount/part_search.h"

#include <algorithm>
#include <cmath>

#include "methods/matchcount/slice_counter.h"
#include "methods/ordered_scan.h"
#include "protocol/part_rows.h"

namespace pgwarp::matchcount
{

namespace
{

// The counts of interest. False where there are none.
bool find_range(const PartQuery& query, CountRange* range)
{
    constexpr double most = 1U << 31;  // no count reaches it
    range->cancel = query.cancel;
    if (!(query.within > -most)) return false;
    if (query.within < 0) range->least = static_cast<std::uint32_t>(std::ceil(-query.within));
    const double after = -query.after.distance;
    if (after < 0) return false;
    if (after >= most) return true;
    // Between two counts, all rows of the larger one are before the cursor.
    range->after = {query.after.row, static_cast<std::uint32_t>(std::ceil(after))};
    if (std::ceil(after) != after) range->after.row = std::numeric_limits<std::uint32_t>::max();
    return true;
}

std::vector<RowResult> search_overlap(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    CountRange range;
    if (!find_range(query, &range)) return {};
    const std::vector<Item> items = items_of(index.dictionary, index.element, query.words);
    std::vector<RowResult> found;
    for (const CountedRow& row : search_counts(index.lists, items, query.k, query.dead, workspace, range).rows)
        found.push_back({overlap_distance(row.count), row.row});
    return found;
}

// The queue of rows that share an element with the query, under the Jaccard distance.
class JaccardQueue
{
public:
    JaccardQueue(const PartIndex& index, const PartQuery& query)
        : index_(index), query_(query), size_(query.words.size() / set_words), first_(query.k)
    {
        raise(query.within);
    }

    std::uint32_t threshold() const { return threshold_; }
    bool done() const { return threshold_ > size_; }
    void pass(std::uint32_t row, std::uint32_t count)
    {
        if (!first_.full()) matched_.push_back(row);
        offer(row, count);
    }
    // Offers the live rows of count 0, nearest first, and returns the results.
    std::vector<RowResult> take_sorted()
    {
        // An empty set is equal to an empty query.
        if (size_ == 0) offer_unmatched([this](std::uint32_t row) { return index_.sizes[row] == 0; });
        if (query_.within >= 1) offer_unmatched([this](std::uint32_t row) { return size_ + index_.sizes[row] > 0; });
        return first_.take_sorted();
    }

private:
    // The least count of a row at this distance: 1 - c / size_ bounds it from below.
    void raise(double distance)
    {
        constexpr double slack = 1e-6;  // against rounding
        if (!(distance < 1)) return;
        const double least = std::ceil((1 - distance) * static_cast<double>(size_) - slack);
        threshold_ = static_cast<std::uint32_t>(std::clamp(least, 1.0, static_cast<double>(size_) + 1));
    }
    void offer(std::uint32_t row, std::uint32_t count)
    {
        const RowResult found{jaccard_distance_of_sets(count, size_, index_.sizes[row]), row};
        if (!(found.distance <= query_.within) || !comes_before(query_.after, found) || !first_.takes(found)) return;
        first_.offer(found);
        if (first_.full()) raise(first_.last_distance());
    }
    // While the results are fewer than k, matched_ holds all rows of another count.
    template <class Wanted>
    void offer_unmatched(const Wanted& wanted)
    {
        auto matched = matched_.begin();
        for (std::uint32_t row = 0; row < index_.sizes.size() && !first_.full(); ++row) {
            if (matched != matched_.end() && *matched == row) {
                ++matched;
            } else if (wanted(row) && !bit_is_set(query_.dead, row)) {
                offer(row, 0);
            }
        }
    }

    const PartIndex& index_;
    const PartQuery& query_;
    std::size_t size_;
    FirstRows first_;
    std::uint32_t threshold_ = 1;
    std::vector<std::uint32_t> matched_;  // ascending
};

std::vector<RowResult> search_jaccard(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    const std::vector<Item> items = items_of(index.dictionary, index.element, query.words);
    JaccardQueue queue(index, query);
    count_rows(index.lists, items, count_bound(index.lists, items), query.dead, query.cancel, queue, *workspace.memory);
    return queue.take_sorted();
}

}  // namespace

std::vector<RowResult> search_parts(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    if (query.k == 0) return {};
    return index.metric == Metric::set_jaccard ? search_jaccard(index, query, workspace)
                                               : search_overlap(index, query, workspace);
}

}  // namespace pgwarp::matchcount
