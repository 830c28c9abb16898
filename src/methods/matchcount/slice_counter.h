// Counts the rows that match a query, a slice of rows at a time so that the counters stay in the cache, and offers them
// to a queue in row order, so that of equal rows the first ones pass.
//
// A queue has a threshold(), below which counts are of no interest (at least 1), takes rows of other counts by
// pass(row, count), and is done() when no row can be of interest any more. Where it has may_take(row, counts), it is
// asked first whether any row of a block is of interest.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "methods/matchcount/count_workspace.h"
#include "methods/matchcount/keyword_lists.h"
#include "methods/row_bitmap.h"

namespace pgwarp::matchcount
{

// Counts of neighbouring rows; behind the last row they are 0.
using BlockOfCounts = std::span<const std::uint16_t>;
inline constexpr std::size_t most_rows_of_block = 64;

template <class Queue>
concept TakesBlocks = requires(const Queue& queue, BlockOfCounts counts)
{
    queue.may_take(std::uint32_t{}, counts);
};

// Looks at a cancel token, which may be null, between pieces of work.
class PostingPolls
{
public:
    explicit PostingPolls(const CancelToken* cancel) : cancel_(cancel) {}
    void counted(std::size_t postings)
    {
        done_ += postings + 1;
        if (done_ < at_a_time) return;
        done_ = 0;
        if (cancel_ != nullptr) cancel_->check();
    }

private:
    static constexpr std::size_t at_a_time = 1000000;
    const CancelToken* cancel_;
    std::size_t done_ = 0;
};

// Returns the number of postings of rows below `row`: by steps that double, then by binary search.
inline std::size_t postings_below(Postings list, std::uint64_t row)
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
[[gnu::noinline]] inline void add_to_rows(Postings list, std::uint32_t first, Cell one, Cell* counters)
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
template <class Cell, unsigned lanes, class Queue>
class SliceCounter
{
public:
    SliceCounter(std::size_t slice_bytes, std::uint32_t rows, RowBitmap dead, const CancelToken* cancel, Queue& queue,
                 CountWorkspace& workspace)
        : queue_(queue), rows_(rows), dead_(dead), polls_(cancel), lists_(workspace.lists), bitmaps_(workspace.bitmaps)
    {
        const std::size_t cells = (rows + std::size_t{lanes} - 1) / lanes;
        cells_ = std::min(slice_bytes / sizeof(Cell),
                          (cells + rows_of_bitmap_block - 1) / rows_of_bitmap_block * rows_of_bitmap_block);
        workspace.counters.resize(cells_ * sizeof(Cell));
        counters_ = reinterpret_cast<Cell*>(workspace.counters.data());
    }

    // Counts the rows of sorted lists and of bitmaps, slice by slice.
    void run()
    {
        const std::size_t slice = cells_ * lanes;
        for (std::uint64_t first = 0; first < rows_ && !queue_.done(); first += slice) {
            if (bitmaps_.empty()) {
                if (lists_.empty()) return;
                std::uint32_t next = lists_[0].front();
                for (const Postings& list : lists_) next = std::min(next, list.front());
                first = next / slice * slice;
            }
            begin_slice(first);
            polls_.counted(slice);
            for (unsigned lane = 0; lane < lanes; ++lane) count_until(first + (lane + 1) * cells_, lane);
            for (unsigned lane = 0; lane < lanes; ++lane) offer(first + lane * cells_, lane);
        }
    }

    // Counts the rows of lists in any order and of bitmaps, in one slice of all rows.
    void run_whole()
    {
        constexpr std::size_t at_a_time = 1 << 18;
        static_assert(lanes == 1);
        begin_slice(0);
        for (Postings list : lists_) {
            while (!list.empty()) {
                const Postings counted = list.first(std::min(list.size(), at_a_time));
                add_to_rows(counted, 0, Cell{1}, counters_);
                polls_.counted(counted.size());
                list = list.subspan(counted.size());
            }
        }
        offer(0, 0);
    }

private:
    static constexpr std::size_t block = most_rows_of_block / sizeof(Cell);
    static constexpr unsigned lane_bits = 8 * sizeof(Cell) / lanes;

    void begin_slice(std::uint64_t first)
    {
        if constexpr (sizeof(Cell) == 1 && lanes == 1) {
            bitmaps_.write(first, {counters_, cells_});
        } else {
            std::fill_n(counters_, cells_, Cell{0});
        }
    }

    // Counts, in a lane, the rows below `end`, and drops them from the lists.
    void count_until(std::uint64_t end, unsigned lane)
    {
        const auto one = static_cast<Cell>(Cell{1} << lane * lane_bits);
        for (std::size_t i = 0; i < lists_.size();) {
            const std::size_t counted = postings_below(lists_[i], end);
            add_to_rows(lists_[i].first(counted), static_cast<std::uint32_t>(end - cells_), one, counters_);
            polls_.counted(counted);
            lists_[i] = lists_[i].subspan(counted);
            if (!lists_[i].empty()) {
                ++i;
                continue;
            }
            lists_[i] = lists_.back();
            lists_.pop_back();
        }
    }

    // Offers the live rows of a lane, the first of which is `first`, to the queue, in row order.
    void offer(std::uint64_t first, unsigned lane)
    {
        const unsigned shift = lane * lane_bits;
        const auto mask = static_cast<Cell>(static_cast<Cell>(~Cell{0}) >> (8 * sizeof(Cell) - lane_bits) << shift);
        for (std::size_t begin = 0; begin < cells_; begin += block) {
            const std::uint64_t threshold = std::uint64_t{queue_.threshold()} << shift;
            if (threshold > mask) return;
            if (!reaches(counters_ + begin, mask, static_cast<Cell>(threshold))) continue;
            if (!may_take(counters_ + begin, mask, shift, first + begin)) continue;
            for (std::size_t i = begin; i < begin + block; ++i) {
                const std::uint32_t count = static_cast<Cell>(counters_[i] & mask) >> shift;
                const std::uint64_t row = first + i;
                if (count >= queue_.threshold() && !bit_is_set(dead_, row))
                    queue_.pass(static_cast<std::uint32_t>(row), count);
            }
        }
    }

    static bool reaches(const Cell* counters, Cell mask, Cell threshold)
    {
        Cell any = 0;
        for (std::size_t i = 0; i < block; ++i) any |= static_cast<Cell>((counters[i] & mask) >= threshold);
        return any != 0;
    }

    bool may_take(const Cell* counters, Cell mask, unsigned shift, std::uint64_t row) const
    {
        if constexpr (TakesBlocks<Queue>) {
            std::uint16_t counts[block];
            for (std::size_t i = 0; i < block; ++i)
                counts[i] = static_cast<std::uint16_t>((counters[i] & mask) >> shift);
            return queue_.may_take(static_cast<std::uint32_t>(row), counts);
        }
        return true;
    }

    Queue& queue_;
    std::uint32_t rows_;
    RowBitmap dead_;
    PostingPolls polls_;
    std::vector<Postings>& lists_;
    const BitmapSum& bitmaps_;
    std::size_t cells_;
    Cell* counters_;
};

// Counts the rows of few postings by sorting them.
template <class Queue>
void count_sorted(RowBitmap dead, Queue& queue, CountWorkspace& workspace)
{
    std::vector<std::uint32_t>& rows = workspace.rows;
    rows.clear();
    for (const Postings& list : workspace.lists) rows.insert(rows.end(), list.begin(), list.end());
    std::sort(rows.begin(), rows.end());
    for (auto row = rows.begin(); row != rows.end();) {
        const auto next = std::upper_bound(row, rows.end(), *row);
        const auto count = static_cast<std::uint32_t>(next - row);
        if (count >= queue.threshold() && !bit_is_set(dead, *row)) queue.pass(*row, count);
        row = next;
    }
}

// The work of a query.
struct Work {
    std::uint64_t postings = 0;
    std::uint64_t lists = 0;
    // Of these, the lists that have bitmaps.
    std::uint64_t bitmap_postings = 0;
    std::uint64_t bitmap_lists = 0;
};

inline Work work_of(const KeywordLists& lists, std::span<const Item> items, const KeywordBitmaps* bitmaps)
{
    Work work;
    for (const Item& item : items) {
        const KeywordLists::Numbers numbers = lists.numbers(item);
        work.lists += numbers.last - numbers.first;
        work.postings += lists.lists(numbers).size();
        if (bitmaps == nullptr) continue;
        const KeywordLists::Numbers within = bitmaps->within(numbers);
        work.bitmap_lists += within.last - within.first;
        for (const std::size_t number : bitmaps->numbers().subspan(within.first, within.last - within.first))
            work.bitmap_postings += lists.lists(KeywordLists::Numbers{number, number + 1}).size();
    }
    return work;
}

// Collects the bitmaps of keywords; of the others the postings of each, which are sorted, or, where `split` is false,
// of neighbours together. `bitmaps` may be null.
inline void collect_lists(const KeywordLists& lists, std::span<const Item> items, const KeywordBitmaps* bitmaps,
                          bool split, CountWorkspace& workspace)
{
    workspace.lists.clear();
    workspace.bitmaps.clear();
    const auto collect = [&](const KeywordLists::Numbers& numbers) {
        const Postings list = lists.lists(numbers);
        if (!list.empty()) workspace.lists.push_back(list);
    };
    const auto collect_lists_of = [&](const KeywordLists::Numbers& numbers) {
        if (!split) return collect(numbers);
        for (std::size_t i = numbers.first; i < numbers.last; ++i) collect({i, i + 1});
    };
    for (const Item& item : items) {
        KeywordLists::Numbers rest = lists.numbers(item);
        const KeywordLists::Numbers within = bitmaps != nullptr ? bitmaps->within(rest) : KeywordLists::Numbers{0, 0};
        for (std::size_t i = within.first; i < within.last; ++i) {
            const std::size_t number = bitmaps->numbers()[i];
            workspace.bitmaps.add(bitmaps->bitmap(i));
            collect_lists_of({rest.first, number});
            rest.first = number + 1;
        }
        collect_lists_of(rest);
    }
}

// Counts the rows of the lists that match the items and offers the live ones. No count exceeds `bound`. Throws
// Cancelled.
template <class Queue>
void count_rows(const KeywordLists& lists, std::span<const Item> items, std::uint32_t bound, RowBitmap dead,
                const CountOptions& options, Queue& queue, CountWorkspace& workspace)
{
    // In slices that hold fewer postings of each list, most of the time goes into the ends of lists.
    constexpr std::uint64_t postings_a_slice = 32;
    // Of so many rows to a posting, counters are slower than sorting.
    constexpr std::uint64_t rows_a_posting = 1024;
    if (queue.done()) return;
    // Bitmaps of so many rows to a posting are slower than lists.
    constexpr std::uint64_t rows_a_bit = 2;
    Work work = work_of(lists, items, options.bitmaps);
    const bool sums_bitmaps = bound < 1U << 8 && work.bitmap_postings > lists.rows() / rows_a_bit;
    if (sums_bitmaps) {
        work.postings -= work.bitmap_postings;
        work.lists -= work.bitmap_lists;
    }
    const bool few = !sums_bitmaps && work.postings < lists.rows() / rows_a_posting;
    const unsigned bytes = bound < 1U << 8 ? 1 : bound < 1U << 16 ? 2 : 4;
    const std::uint64_t slices = std::uint64_t{lists.rows()} * bytes / workspace.slice_bytes + 1;
    // Many items may share each list, and the lists of an item are kept one by one for slices only.
    constexpr std::uint64_t most_lists = 1U << 18;
    const bool whole = work.lists * slices > work.postings / postings_a_slice || work.lists > most_lists;
    collect_lists(lists, items, sums_bitmaps ? options.bitmaps : nullptr, !few && !whole, workspace);
    if (few) return count_sorted(dead, queue, workspace);
    const auto count = [&]<class Cell, unsigned lanes>() {
        using Counter = SliceCounter<Cell, lanes, Queue>;
        if constexpr (lanes == 1) {
            if (whole)
                return Counter(~std::size_t{0}, lists.rows(), dead, options.cancel, queue, workspace).run_whole();
        }
        Counter(workspace.slice_bytes, lists.rows(), dead, options.cancel, queue, workspace).run();
    };
    if (bound < 1U << 4 && !whole && !sums_bitmaps) return count.template operator()<std::uint8_t, 2>();
    if (bytes == 1) return count.template operator()<std::uint8_t, 1>();
    if (bytes == 2) return count.template operator()<std::uint16_t, 1>();
    count.template operator()<std::uint32_t, 1>();
}

}  // namespace pgwarp::matchcount
