// The predicates of the queries of a search, in memory of their own until the queries are answered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "protocol/predicates.h"

namespace pgwarp
{

// The block of predicates of a message; it does not own the words. Checked by predicates_fault().
struct PredicateBlock {
    PredicateForm form;
    std::span<const std::uint64_t> words;
    std::span<const std::uint32_t> names;  // of the predicate of each query; empty with one predicate, or none
};

// Checks a block for rows with `columns` attributes; null when it is valid, else a description of the fault.
const char* predicates_fault(const PredicateBlock& block, std::uint32_t columns);

class QueryPredicates
{
public:
    QueryPredicates() = default;
    // Of a checked block, for `queries` queries.
    QueryPredicates(const PredicateBlock& block, std::size_t queries);

    // Whether no query has a predicate.
    bool empty() const { return begin_.empty(); }
    std::size_t queries() const { return of_query_.size(); }
    // The predicate of a query, as words; empty where it has none.
    std::span<const std::uint64_t> of(std::size_t query) const
    {
        if (of_query_.empty() || of_query_[query] == no_predicate) return {};
        return predicate(of_query_[query]);
    }

    void clear();
    // Appends queries [first, first + count) of others, which may be no queries with predicates.
    void append(const QueryPredicates& others, std::size_t first, std::size_t count);
    // Appends a query; without words it has no predicate.
    void append(std::span<const std::uint64_t> words);

private:
    static constexpr std::uint32_t no_predicate = 0xffffffffU;

    std::span<const std::uint64_t> predicate(std::uint32_t number) const
    {
        const std::size_t end = number + 1 < begin_.size() ? begin_[number + 1] : words_.size();
        return std::span(words_).subspan(begin_[number], end - begin_[number]);
    }
    std::uint32_t add(std::span<const std::uint64_t> words);

    std::vector<std::uint64_t> words_;
    std::vector<std::size_t> begin_;       // of each predicate
    std::vector<std::uint32_t> of_query_;  // the number of its predicate
};

}  // namespace pgwarp
