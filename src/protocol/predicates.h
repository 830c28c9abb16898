// Predicates over the attributes of rows, as searches carry them. A predicate is a conjunction of terms; a term says
// that the code of one column (protocol/attribute_codes.h) lies in one of some ranges. `=`, `<`, BETWEEN, IN, OR lists
// of one column, IS NULL and IS NOT NULL are all terms.
//
// As words (u64), one predicate after the other:
//   number of terms; then for each term {column | count of ranges << 32, first, last, first, last, ...}
// Columns of a predicate ascend strictly; ranges of a term are disjoint and ascend; first <= last. A predicate without
// terms passes every row, a term without ranges none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/format.h"

namespace pgwarp
{

// Of a message: more predicates travel in more messages, longer ones stay with the executor.
inline constexpr std::size_t max_predicate_words = std::size_t{1} << 14;

struct CodeRange {
    std::uint64_t first;
    std::uint64_t last;  // of the range too
};
static_assert(sizeof(CodeRange) == 16);

// A view of a term; it does not own the words.
struct PredicateTerm {
    std::uint32_t column = 0;
    std::span<const std::uint64_t> words;  // first, last, first, last, ...

    std::size_t range_count() const { return words.size() / 2; }
    CodeRange range(std::size_t i) const { return {words[2 * i], words[2 * i + 1]}; }
    bool contains(std::uint64_t code) const
    {
        std::size_t begin = 0;
        std::size_t end = range_count();  // the first range behind the code
        while (begin < end) {
            const std::size_t middle = begin + (end - begin) / 2;
            if (words[2 * middle] <= code) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return end > 0 && code <= words[2 * end - 1];
    }
};

// Goes over the terms of a predicate. Words from outside must have passed predicate_fault().
class PredicateTerms
{
public:
    explicit PredicateTerms(std::span<const std::uint64_t> predicate) : words_(predicate.subspan(1)) {}
    bool next(PredicateTerm* term)
    {
        if (words_.empty()) return false;
        const std::size_t count = 2 * static_cast<std::size_t>(words_[0] >> 32);
        term->column = static_cast<std::uint32_t>(words_[0]);
        term->words = words_.subspan(1, count);
        words_ = words_.subspan(1 + count);
        return true;
    }

private:
    std::span<const std::uint64_t> words_;
};

// Whether a row with these attributes passes a predicate of one column or more.
inline bool passes(std::span<const std::uint64_t> predicate, const std::uint64_t* attributes)
{
    PredicateTerms terms(predicate);
    PredicateTerm term;
    while (terms.next(&term)) {
        if (!term.contains(attributes[term.column])) return false;
    }
    return true;
}

// Returns the number of words of the first predicate of `words`, or 0 where its numbers are impossible for rows with
// `columns` attributes; then `fault`, if given, gets a description.
inline std::size_t predicate_length(std::span<const std::uint64_t> words, std::uint32_t columns,
                                    const char** fault = nullptr)
{
    const auto refuse = [fault](const char* reason) {
        if (fault != nullptr) *fault = reason;
        return std::size_t{0};
    };
    if (words.empty() || words[0] > columns) return refuse("predicate with an impossible number of terms");
    std::size_t at = 1;
    std::uint64_t next_column = 0;
    for (std::uint64_t term = 0; term < words[0]; ++term) {
        if (at >= words.size()) return refuse("predicate that ends within its terms");
        const std::uint64_t column = words[at] & 0xffffffffU;
        const std::uint64_t ranges = words[at] >> 32;
        if (column < next_column || column >= columns) return refuse("predicate with an impossible column");
        next_column = column + 1;
        ++at;
        if (ranges > (words.size() - at) / 2) return refuse("predicate that ends within its ranges");
        for (std::uint64_t i = 0; i < ranges; ++i, at += 2) {
            if (words[at] > words[at + 1]) return refuse("predicate with a range the wrong way round");
            if (i > 0 && words[at] <= words[at - 1]) return refuse("predicate whose ranges don't ascend");
        }
    }
    return at;
}

// The predicates of the queries of a message: `count` predicates of `words` words in all, and for each query the number
// of its own. All zeros: no query has one.
struct PredicateForm {
    std::uint32_t count = 0;  // of predicates: 0, 1 (of all queries), or more (then each query names its own)
    std::uint32_t words = 0;

    // Of the block behind the queries, from an address that is a multiple of 8: u64 words[words]; with count > 1
    // u32 predicate_of[query_count], padded to 8 bytes.
    std::uint64_t bytes(std::uint32_t query_count) const
    {
        const std::uint64_t names = count > 1 ? (std::uint64_t{4} * query_count + 7) / 8 * 8 : 0;
        return std::uint64_t{8} * words + names;
    }
};
static_assert(sizeof(PredicateForm) == 8);

}  // namespace pgwarp
