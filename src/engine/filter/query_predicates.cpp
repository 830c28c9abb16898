#include "engine/filter/query_predicates.h"

#include <algorithm>

namespace pgwarp
{

const char* predicates_fault(const PredicateBlock& block, std::uint32_t columns)
{
    std::span<const std::uint64_t> rest = block.words;
    for (std::uint32_t i = 0; i < block.form.count; ++i) {
        const char* fault = nullptr;
        const std::size_t length = predicate_length(rest, columns, &fault);
        if (length == 0) return fault;
        rest = rest.subspan(length);
    }
    if (!rest.empty()) return "words behind the last predicate";
    const bool known = std::all_of(block.names.begin(), block.names.end(),
                                   [&](std::uint32_t name) { return name < block.form.count; });
    return known ? nullptr : "query with an unknown predicate";
}

QueryPredicates::QueryPredicates(const PredicateBlock& block, std::size_t queries)
    : words_(block.words.begin(), block.words.end()), of_query_(queries, no_predicate)
{
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < block.form.count; ++i) {
        begin_.push_back(at);
        at += predicate_length(block.words.subspan(at), max_attributes);
    }
    if (begin_.size() == 1) std::fill(of_query_.begin(), of_query_.end(), 0);
    std::copy(block.names.begin(), block.names.end(), of_query_.begin());
}

void QueryPredicates::clear()
{
    words_.clear();
    begin_.clear();
    of_query_.clear();
}

std::uint32_t QueryPredicates::add(std::span<const std::uint64_t> words)
{
    begin_.push_back(words_.size());
    words_.insert(words_.end(), words.begin(), words.end());
    return static_cast<std::uint32_t>(begin_.size() - 1);
}

void QueryPredicates::append(const QueryPredicates& others, std::size_t first, std::size_t count)
{
    if (others.empty()) return of_query_.resize(of_query_.size() + count, no_predicate);
    std::vector<std::uint32_t> numbers(others.begin_.size(), no_predicate);  // here, of the predicates there
    for (std::size_t query = first; query < first + count; ++query) {
        const std::uint32_t there = others.of_query_[query];
        if (there != no_predicate && numbers[there] == no_predicate) numbers[there] = add(others.predicate(there));
        of_query_.push_back(there == no_predicate ? no_predicate : numbers[there]);
    }
}

void QueryPredicates::append(std::span<const std::uint64_t> words)
{
    of_query_.push_back(words.empty() ? no_predicate : add(words));
}

}  // namespace pgwarp
