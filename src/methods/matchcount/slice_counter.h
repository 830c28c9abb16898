// Counts the rows that match a query, a slice of rows at a time so that the counters stay in the cache, and offers them
// to a queue in row order, so that of equal rows the first ones pass.
//
// A queue has a threshold(), below which counts are of no interest (at least 1), takes rows of other counts by
// pass(row, count), and is done() when no row can be of interest any more.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "methods/matchcount/match_count.h"

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
                 CountWorkspace::Memory& memory)
        : queue_(queue), dead_(dead), polls_(cancel), lists_(memory.lists)
    {
        const std::size_t cells = (rows + std::size_t{lanes} - 1) / lanes;
        cells_ = std::min(slice_bytes / sizeof(Cell), (cells + block - 1) / block * block);
        memory.counters.resize(cells_ * sizeof(Cell));
        counters_ = reinterpret_cast<Cell*>(memory.counters.data());
    }

    // Counts the rows of sorted lists, slice by slice.
    void run()
    {
        while (!lists_.empty() && !queue_.done()) {
            std::uint32_t next = lists_[0].front();
            for (const Postings& list : lists_) next = std::min(next, list.front());
            const std::uint64_t first = next / (cells_ * lanes) * (cells_ * lanes);
            std::fill_n(counters_, cells_, Cell{0});
            for (unsigned lane = 0; lane < lanes; ++lane) count_until(first + (lane + 1) * cells_, lane);
            for (unsigned lane = 0; lane < lanes; ++lane) offer(first + lane * cells_, lane);
        }
    }

    // Counts the rows of lists in any order, in one slice of all rows.
    void run_whole()
    {
        constexpr std::size_t at_a_time = 1 << 18;
        static_assert(lanes == 1);
        std::fill_n(counters_, cells_, Cell{0});
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
    static constexpr std::size_t block = 64 / sizeof(Cell);
    static constexpr unsigned lane_bits = 8 * sizeof(Cell) / lanes;

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

    Queue& queue_;
    RowBitmap dead_;
    PostingPolls polls_;
    std::vector<Postings>& lists_;
    std::size_t cells_;
    Cell* counters_;
};

// Counts the rows of few postings by sorting them.
template <class Queue>
void count_sorted(RowBitmap dead, Queue& queue, CountWorkspace::Memory& memory)
{
    std::vector<std::uint32_t>& rows = memory.rows;
    rows.clear();
    for (const Postings& list : memory.lists) rows.insert(rows.end(), list.begin(), list.end());
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
};

inline Work work_of(const KeywordLists& lists, std::span<const Item> items)
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
inline void collect_lists(const KeywordLists& lists, std::span<const Item> items, bool split,
                          std::vector<Postings>& out)
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

// Counts the rows of the lists that match the items and offers the live ones. No count exceeds `bound`. Throws
// Cancelled.
template <class Queue>
void count_rows(const KeywordLists& lists, std::span<const Item> items, std::uint32_t bound, RowBitmap dead,
                const CancelToken* cancel, Queue& queue, CountWorkspace::Memory& memory)
{
    // In slices that hold fewer postings of each list, most of the time goes into the ends of lists.
    constexpr std::uint64_t postings_a_slice = 32;
    // Of so many rows to a posting, counters are slower than sorting.
    constexpr std::uint64_t rows_a_posting = 1024;
    if (queue.done()) return;
    const Work work = work_of(lists, items);
    const bool few = work.postings < lists.rows() / rows_a_posting;
    const unsigned bytes = bound < 1U << 8 ? 1 : bound < 1U << 16 ? 2 : 4;
    const std::uint64_t slices = std::uint64_t{lists.rows()} * bytes / memory.slice_bytes + 1;
    const bool whole = work.lists * slices > work.postings / postings_a_slice;
    collect_lists(lists, items, !few && !whole, memory.lists);
    if (few) return count_sorted(dead, queue, memory);
    const auto count = [&]<class Cell, unsigned lanes>() {
        using Counter = SliceCounter<Cell, lanes, Queue>;
        if constexpr (lanes == 1) {
            if (whole) return Counter(~std::size_t{0}, lists.rows(), dead, cancel, queue, memory).run_whole();
        }
        Counter(memory.slice_bytes, lists.rows(), dead, cancel, queue, memory).run();
    };
    if (bound < 1U << 4 && !whole) return count.template operator()<std::uint8_t, 2>();
    if (bytes == 1) return count.template operator()<std::uint8_t, 1>();
    if (bytes == 2) return count.template operator()<std::uint16_t, 1>();
    count.template operator()<std::uint32_t, 1>();
}

}  // namespace pgwarp::matchcount
