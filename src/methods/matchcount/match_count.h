// The match-count model and its inverted index (GENIE, sections 3 and 4): a row is a list of keywords, a query a set of
// items, an item a range of keywords; the match count of a row is the number of (item, element) pairs where the item
// contains the element (definition 3.1). Searches return the rows of largest count.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/row_bitmap.h"
#include "numeric/parallel.h"

namespace pgwarp::matchcount
{

// The keywords first to last. An item with last < first contains nothing.
struct Item {
    std::uint32_t first;
    std::uint32_t last;
};

// Less than 2^32 rows as lists of keywords, in any order and with duplicates, each of which counts. Row i is
// keywords[offsets[i], offsets[i + 1]).
struct KeywordRows {
    std::span<const std::uint64_t> offsets;  // [rows + 1]
    std::span<const std::uint32_t> keywords;
};

// The inverted index (section 4.1): all posting lists in one list array, and their starts, by a position array over the
// universe of keywords where it is dense, by a sorted array of the keywords that occur where it is sparse.
class KeywordLists
{
public:
    KeywordLists(const KeywordRows& rows, ThreadPool& pool);

    std::uint32_t rows() const { return rows_; }
    std::uint64_t postings() const { return list_array_.size(); }
    std::uint32_t longest_row() const { return longest_row_; }    // keywords
    std::uint32_t most_repeats() const { return most_repeats_; }  // of one keyword in one row
    std::uint64_t memory_bytes() const;
    // The posting lists have numbers, by keyword, ascending. Returns those of the keywords of an item; an empty range
    // of any numbers where none of them occurs.
    struct Numbers {
        std::size_t first;
        std::size_t last;  // excluded
    };
    Numbers numbers(const Item& item) const;
    std::size_t list_count() const { return positions_.size() - 1; }  // numbers
    // Returns the place of a list in the list array.
    std::uint64_t start(std::size_t number) const { return positions_[number]; }
    // Posting lists of neighbouring numbers are neighbours in the list array: returns them as one span.
    std::span<const std::uint32_t> lists(const Numbers& numbers) const;
    std::span<const std::uint32_t> lists(const Item& item) const { return lists(numbers(item)); }
    // The rows of one keyword, ascending; a row is there once for each duplicate.
    std::span<const std::uint32_t> list(std::uint32_t keyword) const { return lists(Item{keyword, keyword}); }

private:
    std::uint32_t rows_ = 0;
    std::uint32_t longest_row_ = 0;
    std::uint32_t most_repeats_ = 0;
    bool dense_ = false;
    BulkVector<std::uint32_t> keywords_;    // sparse: those that occur, ascending
    BulkVector<std::uint64_t> positions_;   // the start of each list; one more at the end
    BulkVector<std::uint32_t> list_array_;  // row numbers
};

struct CountedRow {
    std::uint32_t row;
    std::uint32_t count;
};

// Memory that searches use again and again. One thread at a time.
class CountWorkspace
{
public:
    // `slice_bytes`: of the counters that a search works on at a time. It changes the speed only.
    explicit CountWorkspace(std::size_t slice_bytes = 524288);
    ~CountWorkspace();
    CountWorkspace(CountWorkspace&&) noexcept;
    CountWorkspace& operator=(CountWorkspace&&) noexcept;

    struct Memory;
    std::unique_ptr<Memory> memory;
};

// The rows of interest, in order of count, descending, ties by row; and a poll.
struct CountRange {
    CountedRow after = {0, 0xffffffff};   // those up to this one are left out
    std::uint32_t least = 0;              // so are those of smaller counts
    const CancelToken* cancel = nullptr;  // polled every few milliseconds
};

// The result of one query.
struct MatchCounts {
    std::vector<CountedRow> rows;  // by count, descending; ties by row
    // The AuditThreshold of the count priority queue at the end (section 4.2, theorem 4.1): one more than the k-th
    // count; where fewer than k rows match the least count of interest, at least 1.
    std::uint32_t audit_threshold = 1;
    std::uint32_t passed_rows = 0;  // the gate: at most k * audit_threshold, where no row is left out
};

// Returns the k live rows of largest count, ties by row; rows of count 0 follow in row order where fewer match. By a
// count priority queue: counters of just enough bits, a gate, and a table of the rows that passed it (algorithm 1).
// `dead` may be empty. Throws BadRequest where a count might exceed 2^31 - 1, and Cancelled.
MatchCounts search_counts(const KeywordLists& lists, std::span<const Item> items, std::uint32_t k, RowBitmap dead,
                          CountWorkspace& workspace, const CountRange& range = {});

// Returns a bound of the count of every row. Throws BadRequest where it exceeds 2^31 - 1.
std::uint32_t count_bound(const KeywordLists& lists, std::span<const Item> items);

}  // namespace pgwarp::matchcount
