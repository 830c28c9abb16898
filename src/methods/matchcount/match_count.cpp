// The search by a count priority queue. Rows are counted a slice at a time, so that the counters stay in the cache;
// then the slice's rows go to the gate in row order, so that it lets the smallest rows of equal count pass.
#include "methods/matchcount/match_count.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "methods/errors.h"

namespace pgwarp::matchcount
{

using Postings = std::span<const std::uint32_t>;

struct CountWorkspace::Memory {
    std::size_t slice_bytes;
    BulkVector<std::byte> counters;            // of a slice
    std::vector<Postings> lists;               // of the items: the postings that are not counted yet
    std::vector<std::uint32_t> rows;           // of all postings, where they are few
    std::vector<std::uint32_t> rows_of_count;  // [bound + 1]
    std::vector<CountedRow> table;             // the rows that passed the gate, ascending
};

CountWorkspace::CountWorkspace(std::size_t slice_bytes) : memory(new Memory)
{
    memory->slice_bytes = std::max<std::size_t>(64, std::bit_floor(slice_bytes));
}
CountWorkspace::~CountWorkspace() = default;
CountWorkspace::CountWorkspace(CountWorkspace&&) noexcept = default;
CountWorkspace& CountWorkspace::operator=(CountWorkspace&&) noexcept = default;

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

// Returns a bound of the count of every row.
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

// The gate and the table of the rows that passed it. Of the ZipperArray it needs one entry, that of AuditThreshold: an
// array of the rows of each count gives the next.
class CountQueue
{
public:
    CountQueue(std::uint32_t k, std::uint32_t bound, CountWorkspace::Memory& memory)
        : k_(k), rows_of_count_(memory.rows_of_count), table_(memory.table)
    {
        rows_of_count_.assign(std::size_t{bound} + 1, 0);
        table_.clear();
    }

    std::uint32_t audit_threshold() const { return audit_threshold_; }

    // A row of a count of at least audit_threshold().
    void pass(std::uint32_t row, std::uint32_t count)
    {
        table_.push_back({row, count});
        ++rows_of_count_[count];
        ++reached_;
        while (reached_ >= k_) reached_ -= rows_of_count_[audit_threshold_++];
    }

private:
    std::uint32_t k_;
    std::uint32_t audit_threshold_ = 1;
    std::uint32_t reached_ = 0;  // rows whose counts have reached audit_threshold_
    std::vector<std::uint32_t>& rows_of_count_;
    std::vector<CountedRow>& table_;
};

// Returns the number of postings of rows below `row`: by steps that double, then by binary search.
std::size_t postings_below(Postings list, std::uint64_t row)
{
    std::size_t begin = 0;
    std::size_t step = 32;
    while (begin + step < list.size() && list[begin + step] < row) {
        begin += step;
        step *= 2;
    }
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(std::min(begin + step, list.size()));
    return static_cast<std::size_t>(std::lower_bound(list.begin() + static_cast<std::ptrdiff_t>(begin), end, row) -
                                    list.begin());
}

// Adds `one` to counters[row - first] of each row of the list. Two rows are read at a time, as one number.
template <class Cell>
[[gnu::noinline]] void add_to_rows(Postings list, std::uint32_t first, Cell one, Cell* counters)
{
    const std::uint32_t* row = list.data();
    const std::uint32_t* const end = row + list.size();
    const std::uint64_t firsts = first | std::uint64_t{first} << 32;
    for (; row + 8 <= end; row += 8) {
        std::uint64_t pairs[4];
        std::memcpy(pairs, row, sizeof(pairs));
        for (std::uint64_t pair : pairs) {
            pair -= firsts;
            counters[static_cast<std::uint32_t>(pair)] += one;
            counters[pair >> 32] += one;
        }
    }
    for (; row < end; ++row) counters[*row - first] += one;
}

// Counters of one width: Cell is the number that holds `lanes` of them. The first rows of a slice lie in the first
// lane of each cell, the next in the second.
template <class Cell, unsigned lanes>
class SliceCounter
{
public:
    SliceCounter(std::size_t slice_bytes, std::uint32_t rows, CountWorkspace::Memory& memory) : lists_(memory.lists)
    {
        const std::size_t cells = (rows + std::size_t{lanes} - 1) / lanes;
        cells_ = std::min(slice_bytes / sizeof(Cell), (cells + block - 1) / block * block);
        memory.counters.resize(cells_ * sizeof(Cell));
        counters_ = reinterpret_cast<Cell*>(memory.counters.data());
    }

    // Counts the rows of sorted lists, slice by slice. No count exceeds `bound`.
    void run(CountQueue& queue, std::uint32_t bound, RowBitmap dead)
    {
        while (!lists_.empty() && queue.audit_threshold() <= bound) {
            std::uint32_t next = lists_[0].front();
            for (const Postings& list : lists_) next = std::min(next, list.front());
            const std::uint64_t first = next / (cells_ * lanes) * (cells_ * lanes);
            std::fill_n(counters_, cells_, Cell{0});
            for (unsigned lane = 0; lane < lanes; ++lane) count_until(first + (lane + 1) * cells_, lane);
            for (unsigned lane = 0; lane < lanes; ++lane) offer(first + lane * cells_, lane, queue, dead);
        }
    }

    // Counts the rows of lists in any order, in one slice of all rows.
    void run_whole(CountQueue& queue, RowBitmap dead)
    {
        static_assert(lanes == 1);
        std::fill_n(counters_, cells_, Cell{0});
        for (const Postings& list : lists_) add_to_rows(list, 0, Cell{1}, counters_);
        offer(0, 0, queue, dead);
    }

private:
    static constexpr std::size_t block = 64 / sizeof(Cell);
    static constexpr unsigned lane_bits = 8 * sizeof(Cell) / lanes;

    // Counts, in a lane, the rows below `end`, and drops them from the lists.
    void count_until(std::uint64_t end, unsigned lane)
    {
        const auto one = static_cast<Cell>(Cell{1} << lane * lane_bits);
        for (std::size_t i = 0; i < lists_.size();) {
            const std::size_t counted = postings_below(lists_[i], end);
            add_to_rows(lists_[i].first(counted), static_cast<std::uint32_t>(end - cells_), one, counters_);
            lists_[i] = lists_[i].subspan(counted);
            if (!lists_[i].empty()) {
                ++i;
                continue;
            }
            lists_[i] = lists_.back();
            lists_.pop_back();
        }
    }

    // Offers the live rows of a lane, the first of which is `first`, to the gate, in row order.
    void offer(std::uint64_t first, unsigned lane, CountQueue& queue, RowBitmap dead) const
    {
        const unsigned shift = lane * lane_bits;
        const auto mask = static_cast<Cell>(static_cast<Cell>(~Cell{0}) >> (8 * sizeof(Cell) - lane_bits) << shift);
        for (std::size_t begin = 0; begin < cells_; begin += block) {
            const std::uint64_t threshold = std::uint64_t{queue.audit_threshold()} << shift;
            if (threshold > mask) return;
            if (!reaches(counters_ + begin, mask, static_cast<Cell>(threshold))) continue;
            for (std::size_t i = begin; i < begin + block; ++i) {
                const std::uint32_t count = static_cast<Cell>(counters_[i] & mask) >> shift;
                const std::uint64_t row = first + i;
                if (count >= queue.audit_threshold() && !bit_is_set(dead, row))
                    queue.pass(static_cast<std::uint32_t>(row), count);
            }
        }
    }

    static bool reaches(const Cell* counters, Cell mask, Cell threshold)
    {
        Cell any = 0;
        for (std::size_t i = 0; i < block; ++i) any |= static_cast<Cell>((counters[i] & mask) >= threshold);
        return any != 0;
    }

    std::vector<Postings>& lists_;
    std::size_t cells_;
    Cell* counters_;
};

// Counts the rows of few postings by sorting them.
void count_sorted(CountQueue& queue, RowBitmap dead, CountWorkspace::Memory& memory)
{
    std::vector<std::uint32_t>& rows = memory.rows;
    rows.clear();
    for (const Postings& list : memory.lists) rows.insert(rows.end(), list.begin(), list.end());
    std::sort(rows.begin(), rows.end());
    for (auto row = rows.begin(); row != rows.end();) {
        const auto next = std::upper_bound(row, rows.end(), *row);
        const auto count = static_cast<std::uint32_t>(next - row);
        if (count >= queue.audit_threshold() && !bit_is_set(dead, *row)) queue.pass(*row, count);
        row = next;
    }
}

// The work of a query.
struct Work {
    std::uint64_t postings = 0;
    std::uint64_t lists = 0;
};

Work work_of(const KeywordLists& lists, std::span<const Item> items)
{
    Work work;
    for (const Item& item : items) {
        const KeywordLists::Numbers numbers = lists.numbers(item);
        work.lists += numbers.last - numbers.first;
        work.postings += lists.lists(numbers).size();
    }
    return work;
}

// Collects the postings of each keyword, which are sorted, or, where `split` is false, of each item.
void collect_lists(const KeywordLists& lists, std::span<const Item> items, bool split, std::vector<Postings>& out)
{
    out.clear();
    const auto collect = [&](const KeywordLists::Numbers& numbers) {
        const Postings list = lists.lists(numbers);
        if (!list.empty()) out.push_back(list);
    };
    for (const Item& item : items) {
        const KeywordLists::Numbers numbers = lists.numbers(item);
        if (split) {
            for (std::size_t i = numbers.first; i < numbers.last; ++i) collect({i, i + 1});
        } else {
            collect(numbers);
        }
    }
}

void count_rows(const KeywordLists& lists, std::span<const Item> items, std::uint32_t bound, RowBitmap dead,
                CountQueue& queue, CountWorkspace::Memory& memory)
{
    // In slices that hold fewer postings of each list, most of the time goes into the ends of lists.
    constexpr std::uint64_t postings_a_slice = 32;
    // Of so many rows to a posting, counters are slower than sorting.
    constexpr std::uint64_t rows_a_posting = 1024;
    const Work work = work_of(lists, items);
    const bool few = work.postings < lists.rows() / rows_a_posting;
    const unsigned bytes = bound < 1U << 8 ? 1 : bound < 1U << 16 ? 2 : 4;
    const std::uint64_t slices = std::uint64_t{lists.rows()} * bytes / memory.slice_bytes + 1;
    const bool whole = work.lists * slices > work.postings / postings_a_slice;
    collect_lists(lists, items, !few && !whole, memory.lists);
    if (few) return count_sorted(queue, dead, memory);
    const auto count = [&]<class Cell, unsigned lanes>() {
        if constexpr (lanes == 1) {
            if (whole) return SliceCounter<Cell, 1>(~std::size_t{0}, lists.rows(), memory).run_whole(queue, dead);
        }
        SliceCounter<Cell, lanes>(memory.slice_bytes, lists.rows(), memory).run(queue, bound, dead);
    };
    if (bound < 1U << 4 && !whole) return count.template operator()<std::uint8_t, 2>();
    if (bytes == 1) return count.template operator()<std::uint8_t, 1>();
    if (bytes == 2) return count.template operator()<std::uint16_t, 1>();
    count.template operator()<std::uint32_t, 1>();
}

// Returns the k best of the table, whose rows have counts of at least audit_threshold - 1.
std::vector<CountedRow> best_of_table(std::vector<CountedRow>& table, std::uint32_t k, std::uint32_t audit_threshold)
{
    std::erase_if(table, [&](const CountedRow& row) { return row.count + 1 < audit_threshold; });
    std::vector<CountedRow> best(table);
    std::sort(best.begin(), best.end(), [](const CountedRow& a, const CountedRow& b) {
        return a.count != b.count ? a.count > b.count : a.row < b.row;
    });
    if (best.size() > k) best.resize(k);
    return best;
}

// Appends live rows of count 0 until there are k. The table holds all live rows of another count.
void append_unmatched(const KeywordLists& lists, RowBitmap dead, std::span<const CountedRow> table, std::uint32_t k,
                      std::vector<CountedRow>& best)
{
    auto matched = table.begin();
    for (std::uint32_t row = 0; row < lists.rows() && best.size() < k; ++row) {
        if (matched != table.end() && matched->row == row) {
            ++matched;
        } else if (!bit_is_set(dead, row)) {
            best.push_back({row, 0});
        }
    }
}

}  // namespace

MatchCounts search_counts(const KeywordLists& lists, std::span<const Item> items, std::uint32_t k, RowBitmap dead,
                          CountWorkspace& workspace)
{
    MatchCounts found;
    if (k == 0) return found;
    CountWorkspace::Memory& memory = *workspace.memory;
    const std::uint32_t bound = count_bound(lists, items);
    CountQueue queue(k, bound, memory);
    count_rows(lists, items, bound, dead, queue, memory);
    found.audit_threshold = queue.audit_threshold();
    found.passed_rows = static_cast<std::uint32_t>(memory.table.size());
    found.rows = best_of_table(memory.table, k, found.audit_threshold);
    append_unmatched(lists, dead, memory.table, k, found.rows);
    return found;
}

}  // namespace pgwarp::matchcount
