// The search by a count priority queue: the gate, its table, and the rows that match nothing.
#include "methods/matchcount/match_count.h"

#include <algorithm>

#include "methods/errors.h"
#include "methods/matchcount/slice_counter.h"

namespace pgwarp::matchcount
{

namespace
{

// Returns the largest number of items that contain one keyword.
std::uint64_t most_overlapping(std::span<const Item> items)
{
    std::vector<std::uint32_t> firsts;
    std::vector<std::uint32_t> lasts;
    for (const Item& item : items) {
        if (item.last < item.first) continue;
        firsts.push_back(item.first);
        lasts.push_back(item.last);
    }
    std::sort(firsts.begin(), firsts.end());
    std::sort(lasts.begin(), lasts.end());
    std::size_t most = 0;
    std::size_t ended = 0;
    for (std::size_t begun = 0; begun < firsts.size(); ++begun) {
        while (lasts[ended] < firsts[begun]) ++ended;
        most = std::max(most, begun + 1 - ended);
    }
    return most;
}

}  // namespace

std::uint32_t count_bound(const KeywordLists& lists, std::span<const Item> items)
{
    std::uint64_t by_items = 0;
    for (const Item& item : items) {
        if (item.last < item.first) continue;
        const std::uint64_t repeats = (std::uint64_t{item.last} - item.first + 1) * lists.most_repeats();
        by_items += std::min<std::uint64_t>({lists.lists(item).size(), lists.longest_row(), repeats});
    }
    const std::uint64_t bound = std::min(by_items, most_overlapping(items) * lists.longest_row());
    if (bound >= std::uint64_t{1} << 31) throw BadRequest("a match count may exceed 2^31 - 1");
    return static_cast<std::uint32_t>(bound);
}

namespace
{

bool comes_after(const CountedRow& row, const CountedRow& after)
{
    return row.count != after.count ? row.count < after.count : row.row > after.row;
}

// The gate and the table of the rows that passed it. Of the ZipperArray it needs one entry, that of AuditThreshold: an
// array of the rows of each count gives the next. Until the gate rises, the table holds all live rows that match.
class CountQueue
{
public:
    CountQueue(std::uint32_t k, std::uint32_t bound, const CountOptions& options, CountWorkspace& workspace)
        : k_(k),
          most_(std::max(1U, std::min(bound, options.after.count))),
          after_(options.after),
          audit_threshold_(std::max(1U, options.least)),
          rows_of_count_(workspace.rows_of_count),
          table_(workspace.table)
    {
        rows_of_count_.assign(std::size_t{bound} + 1, 0);
        table_.clear();
    }

    // The AuditThreshold.
    std::uint32_t threshold() const { return audit_threshold_; }
    bool done() const { return audit_threshold_ > most_; }

    void pass(std::uint32_t row, std::uint32_t count)
    {
        const bool counts = comes_after({row, count}, after_);
        if (counts || audit_threshold_ == 1) table_.push_back({row, count});
        if (!counts) return;
        ++rows_of_count_[count];
        ++reached_;
        while (reached_ >= k_) reached_ -= rows_of_count_[audit_threshold_++];
    }

private:
    std::uint32_t k_;
    std::uint32_t most_;  // the largest count of a row behind after_; at least 1, since the table is needed
    CountedRow after_;
    std::uint32_t audit_threshold_;
    std::uint32_t reached_ = 0;  // rows whose counts have reached audit_threshold_
    std::vector<std::uint32_t>& rows_of_count_;
    std::vector<CountedRow>& table_;
};

// Returns the k best of the table, whose rows have counts of at least audit_threshold - 1.
std::vector<CountedRow> best_of_table(std::span<const CountedRow> table, std::uint32_t k, std::uint32_t audit_threshold,
                                      const CountedRow& after)
{
    std::vector<CountedRow> best;
    for (const CountedRow& row : table)
        if (row.count + 1 >= audit_threshold && comes_after(row, after)) best.push_back(row);
    std::sort(best.begin(), best.end(), [](const CountedRow& a, const CountedRow& b) {
        return a.count != b.count ? a.count > b.count : a.row < b.row;
    });
    if (best.size() > k) best.resize(k);
    return best;
}

// Appends live rows of count 0 until there are k. The table holds all live rows of another count.
void append_unmatched(const KeywordLists& lists, RowBitmap dead, std::span<const CountedRow> table, std::uint32_t k,
                      const CountedRow& after, std::vector<CountedRow>& best)
{
    auto matched = table.begin();
    for (std::uint32_t row = 0; row < lists.rows() && best.size() < k; ++row) {
        if (matched != table.end() && matched->row == row) {
            ++matched;
        } else if (!bit_is_set(dead, row) && comes_after({row, 0}, after)) {
            best.push_back({row, 0});
        }
    }
}

}  // namespace

MatchCounts search_counts(const KeywordLists& lists, std::span<const Item> items, std::uint32_t k, RowBitmap dead,
                          CountWorkspace& workspace, const CountOptions& options)
{
    MatchCounts found;
    if (k == 0) return found;
    const std::uint32_t bound = count_bound(lists, items);
    CountQueue queue(k, bound, options, workspace);
    count_rows(lists, items, bound, dead, options, queue, workspace);
    found.audit_threshold = queue.threshold();
    found.passed_rows = static_cast<std::uint32_t>(workspace.table.size());
    found.rows = best_of_table(workspace.table, k, found.audit_threshold, options.after);
    if (options.least == 0) append_unmatched(lists, dead, workspace.table, k, options.after, found.rows);
    return found;
}

}  // namespace pgwarp::matchcount
