// The search by overlap and by the Jaccard distance of sets.
#include "methods/matchcount/part_search.h"

#include <algorithm>
#include <cmath>

#include "methods/matchcount/slice_counter.h"
#include "methods/ordered_scan.h"
#include "protocol/part_rows.h"
#include "protocol/search_bound.h"

namespace pgwarp::matchcount
{

namespace
{

// Finds the counts of interest. False where there are none.
bool find_options(const PartIndex& index, const PartQuery& query, CountOptions* options)
{
    constexpr double most = 1U << 31;  // no count reaches it
    options->cancel = query.cancel;
    options->bitmaps = &index.bitmaps;
    if (!(query.within > -most)) return false;
    if (query.within < 0) options->least = static_cast<std::uint32_t>(std::ceil(-query.within));
    const double after = -query.after.distance;
    if (after < 0) return false;
    if (after >= most) return true;
    // Between two counts, all rows of the larger one are before the cursor.
    options->after = {query.after.row, static_cast<std::uint32_t>(std::ceil(after))};
    if (std::ceil(after) != after) options->after.row = std::numeric_limits<std::uint32_t>::max();
    return true;
}

std::vector<RowResult> search_overlap(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    CountOptions options;
    if (!find_options(index, query, &options)) return {};
    const std::vector<Item> items = items_of(index.dictionary, index.element, query.words);
    std::vector<RowResult> found;
    for (const CountedRow& row : search_counts(index.lists, items, query.k, query.dead, workspace, options).rows)
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
    bool may_take(std::uint32_t row, BlockOfCounts counts) const
    {
        const std::uint16_t* const sizes = &index_.sizes[row];
        unsigned any = 0;
        for (std::size_t i = 0; i < counts.size(); ++i)
            any |= static_cast<unsigned>(counts[i] >= threshold_) & static_cast<unsigned>(counts[i] >= least(sizes[i]));
        return any != 0;
    }
    void pass(std::uint32_t row, std::uint32_t count)
    {
        if (!first_.full()) matched_.push_back(row);
        if (count >= least(index_.sizes[row])) offer(row, count);
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
    // Rows within this distance alone are of interest: 1 - c / size_ bounds it from below.
    void raise(double distance)
    {
        constexpr double slack = 1e-6;  // against rounding
        if (!(distance < 1)) return;
        const double least = std::ceil((1 - distance) * static_cast<double>(size_) - slack);
        threshold_ = static_cast<std::uint16_t>(std::clamp(least, 1.0, static_cast<double>(size_) + 1));
        if (distance >= 0) share_ = static_cast<std::uint16_t>((1 - distance) / (2 - distance) * 65536 - slack);
    }
    // The least count of a set of this size, rounded down: a share of the sum of both sizes.
    std::uint16_t least(std::uint16_t size) const
    {
        const auto both = static_cast<std::uint16_t>(most_summand_ + size);
        return static_cast<std::uint16_t>(std::uint32_t{both} * share_ >> 16);
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
        for (std::uint32_t row = 0; row < index_.lists.rows() && !first_.full(); ++row) {
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
    std::uint16_t most_summand_ = static_cast<std::uint16_t>(std::min<std::size_t>(size_, 32767));  // of 16-bit sums
    FirstRows first_;
    std::uint16_t threshold_ = 1;
    std::uint16_t share_ = 0;             // of 65536
    std::vector<std::uint32_t> matched_;  // ascending
};

std::vector<RowResult> search_jaccard(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    const std::vector<Item> items = items_of(index.dictionary, index.element, query.words);
    CountOptions options;
    options.bitmaps = &index.bitmaps;
    options.cancel = query.cancel;
    JaccardQueue queue(index, query);
    count_rows(index.lists, items, count_bound(index.lists, items), query.dead, options, queue, workspace);
    return queue.take_sorted();
}

}  // namespace

PartQuery part_query(const SearchBatch& batch, std::size_t number)
{
    PartQuery query;
    query.words = batch.lists.list(number);
    query.k = batch.k;
    query.dead = batch.dead;
    query.within = within_of(batch.settings);
    query.cancel = batch.cancel;
    return query;
}

std::vector<RowResult> search_parts(const PartIndex& index, const PartQuery& query, CountWorkspace& workspace)
{
    if (query.k == 0) return {};
    return index.metric == Metric::set_jaccard ? search_jaccard(index, query, workspace)
                                               : search_overlap(index, query, workspace);
}

}  // namespace pgwarp::matchcount
