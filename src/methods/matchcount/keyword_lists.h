// The inverted index of rows that are lists of keywords (GENIE, section 4.1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "methods/bulk_memory.h"
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
    // Returns the keyword of a list.
    std::uint32_t keyword(std::size_t number) const
    {
        return dense_ ? static_cast<std::uint32_t>(number) : keywords_[number];
    }
    // Returns the list of a keyword that occurs, which is `number` or behind it.
    std::size_t number_from(std::size_t number, std::uint32_t keyword) const
    {
        if (dense_) return keyword;
        const auto from = keywords_.begin() + static_cast<std::ptrdiff_t>(number);
        return static_cast<std::size_t>(std::lower_bound(from, keywords_.end(), keyword) - keywords_.begin());
    }
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

}  // namespace pgwarp::matchcount
