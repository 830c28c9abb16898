// The predicates of a batch, each once, and what tests of all rows by them need: which columns have so few codes that
// answers are looked up, and which predicates have terms on others. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rows/sent_filters.h"

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t group_predicates = 32;        // whose answers are the bits of a word
inline constexpr std::uint64_t most_table_codes = 1U << 14;  // of a column whose answers are looked up
inline constexpr std::size_t most_tables = 4;

// A column whose answers are looked up: those of code `first` + i at `begin` + i.
struct CodeTable {
    std::uint64_t first;
    std::uint32_t column;
    std::uint32_t entries;
    std::uint32_t begin;
};

// The only term of a predicate on a column without a table: one range.
struct RangeTerm {
    std::uint64_t first;
    std::uint64_t last;
    std::uint32_t column;
};

class DistinctFilters
{
public:
    DistinctFilters() = default;
    // Of the first queries: of as many as SentFilters takes predicates for, at least one. The predicates' memory
    // outlives this.
    DistinctFilters(const AttributeView& attributes, std::span<const PredicateWords> queries,
                    ThreadPool& pool = caller_alone());
    // `sent` reads the predicates of this.
    DistinctFilters(const DistinctFilters&) = delete;
    DistinctFilters& operator=(const DistinctFilters&) = delete;

    std::span<const std::uint32_t> of_query() const { return of_query_; }
    const SentFilters& sent() const { return sent_; }
    std::uint32_t count() const { return static_cast<std::uint32_t>(sent_.count()); }
    std::uint32_t groups() const { return (count() + group_predicates - 1) / group_predicates; }
    std::span<const CodeTable> tables() const { return tables_; }
    // Entries of all tables of a group.
    std::uint32_t entries() const { return tables_.empty() ? 0 : tables_.back().begin + tables_.back().entries; }
    // [groups]: the predicates that have a range term, and those with other terms on columns without a table.
    std::span<const std::uint32_t> ranged() const { return ranged_; }
    std::span<const std::uint32_t> tested() const { return tested_; }
    // [count]
    std::span<const RangeTerm> ranges() const { return ranges_; }
    std::uint64_t tested_count() const;

private:
    std::vector<bool> choose_tables(const AttributeView& attributes);
    void sort_terms(const std::vector<bool>& has_table);

    std::vector<PredicateWords> distinct_;
    std::vector<std::uint32_t> of_query_;
    SentFilters sent_;
    std::vector<CodeTable> tables_;
    std::vector<std::uint32_t> ranged_;
    std::vector<std::uint32_t> tested_;
    std::vector<RangeTerm> ranges_;
};

}  // namespace pgwarp::cuda::rows
