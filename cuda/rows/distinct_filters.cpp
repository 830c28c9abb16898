#include "rows/distinct_filters.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "protocol/predicate_hash.h"
#include "protocol/predicates.h"

namespace pgwarp::cuda::rows
{

namespace
{

template <class Use>
void for_each_term(PredicateWords words, const Use& use)
{
    if (words.empty()) return;
    PredicateTerms terms(words);
    PredicateTerm term;
    while (terms.next(&term)) use(term);
}

}  // namespace

DistinctFilters::DistinctFilters(const AttributeView& attributes, std::span<const PredicateWords> queries,
                                 ThreadPool& pool)
{
    std::unordered_multimap<std::uint64_t, std::uint32_t> number_of;
    number_of.reserve(queries.size());
    of_query_.reserve(queries.size());
    // Most of the time goes by until the first words of each are read.
    constexpr std::size_t of_task = 256;
    std::vector<std::uint64_t> hashes(queries.size());
    pool.parallel_for(queries.size(), of_task, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) hashes[i] = predicate_hash(queries[i]);
    });
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const PredicateWords& words = queries[i];
        const std::uint64_t hash = hashes[i];
        const auto [begin, end] = number_of.equal_range(hash);
        const auto found = std::find_if(
            begin, end, [&](const auto& other) { return are_equal_predicates(distinct_[other.second], words); });
        if (found != end) {
            of_query_.push_back(found->second);
            continue;
        }
        const auto number = static_cast<std::uint32_t>(distinct_.size());
        number_of.emplace(hash, number);
        distinct_.push_back(words);
        of_query_.push_back(number);
    }
    sent_ = SentFilters(attributes, distinct_);
    // Predicates are numbered as queries first name them, so a query with one that is not sent ends the first queries.
    const auto unsent =
        std::find_if(of_query_.begin(), of_query_.end(), [&](std::uint32_t number) { return number >= sent_.count(); });
    of_query_.erase(unsent, of_query_.end());
    sort_terms(choose_tables(attributes));
}

// Returns which columns have one.
std::vector<bool> DistinctFilters::choose_tables(const AttributeView& attributes)
{
    std::vector<bool> used(attributes.columns);
    const std::span<const PredicateWords> predicates(distinct_.data(), sent_.count());
    for (const PredicateWords& words : predicates)
        for_each_term(words, [&](const PredicateTerm& term) { used[term.column] = true; });
    std::vector<bool> has_table(attributes.columns);
    for (std::uint32_t column = 0; column < attributes.columns && attributes.spans != nullptr; ++column) {
        const CodeSpan& span = attributes.spans[column];
        if (!used[column] || span.last - span.first >= most_table_codes || tables_.size() == most_tables) continue;
        const std::uint32_t begin = entries();
        tables_.push_back({span.first, column, static_cast<std::uint32_t>(span.last - span.first + 1), begin});
        has_table[column] = true;
    }
    return has_table;
}

void DistinctFilters::sort_terms(const std::vector<bool>& has_table)
{
    ranged_.assign(groups(), 0);
    tested_.assign(groups(), 0);
    ranges_.assign(count(), RangeTerm{});
    for (std::uint32_t i = 0; i < count(); ++i) {
        PredicateTerm other;
        std::size_t others = 0;
        for_each_term(distinct_[i], [&](const PredicateTerm& term) {
            if (has_table[term.column]) return;
            other = term;
            ++others;
        });
        if (others == 0) continue;
        const std::uint32_t bit = 1U << i % group_predicates;
        if (others > 1 || other.range_count() != 1) {
            tested_[i / group_predicates] |= bit;
            continue;
        }
        ranged_[i / group_predicates] |= bit;
        ranges_[i] = {other.range(0).first, other.range(0).last, other.column};
    }
}

std::uint64_t DistinctFilters::tested_count() const
{
    std::uint64_t count = 0;
    for (const std::uint32_t bits : tested_) count += static_cast<std::uint64_t>(std::popcount(bits));
    return count;
}

}  // namespace pgwarp::cuda::rows
