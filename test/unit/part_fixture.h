// Sets, attributes and queries of attributes for tests: as containers, as the words of rows, and compared by
// definition.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "methods/rows/owned_rows.h"
#include "protocol/part_rows.h"

namespace pgwarp::test
{

using Words = std::vector<std::uint32_t>;
using Set = std::set<std::uint64_t>;
using Attributes = std::map<std::uint64_t, std::uint64_t>;  // name -> value

inline void append_number(std::uint64_t number, Words& words)
{
    words.resize(words.size() + 2);
    write_part_number(number, words.data() + words.size() - 2);
}

inline Words words_of(const Set& set)
{
    Words words;
    for (const std::uint64_t element : set) append_number(element, words);
    return words;
}

inline Words words_of(const Attributes& attributes)
{
    Words words;
    for (const auto& [name, value] : attributes) {
        append_number(name, words);
        append_number(value, words);
    }
    return words;
}

// An item of a query of attributes: ranges of values, disjoint and ascending.
struct QueryItem {
    std::uint64_t name;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
};
using AttributeQuery = std::vector<QueryItem>;

// Items of single values are written as values.
inline Words words_of(const AttributeQuery& query)
{
    Words words;
    for (const QueryItem& item : query) {
        const bool of_values =
            std::ranges::all_of(item.ranges, [](const auto& range) { return range.first == range.second; });
        append_number(item.name, words);
        words.push_back(static_cast<std::uint32_t>(item.ranges.size()) | (of_values ? 0 : is_range));
        for (const auto& [first, last] : item.ranges) {
            append_number(first, words);
            if (!of_values) append_number(last, words);
        }
    }
    return words;
}

// The numbers of a universe from 0 on: neighbours, or spread over all numbers of 64 bits.
inline std::uint64_t spread(std::uint64_t number, bool sparse)
{
    return sparse ? number * 0x9e3779b97f4a7c15U : number;
}

inline Set random_set(std::mt19937_64& random, std::size_t most, std::uint64_t universe, bool sparse = false)
{
    Set set;
    for (std::size_t left = random() % (most + 1); left > 0; --left) set.insert(spread(random() % universe, sparse));
    return set;
}

// Some of `names` attributes, with values below `values`.
inline Attributes random_attributes(std::mt19937_64& random, std::size_t names, std::uint64_t values)
{
    Attributes attributes;
    for (std::uint64_t name = 0; name < names; ++name)
        if (random() % 4 != 0) attributes[spread(name + 1, true)] = random() % values;
    return attributes;
}

// Items of up to three ranges of values below `values`; some names are those of no row, some items repeat a name.
inline AttributeQuery random_query(std::mt19937_64& random, std::size_t most, std::size_t names, std::uint64_t values)
{
    AttributeQuery query(random() % (most + 1));
    for (QueryItem& item : query) {
        item.name = spread(1 + random() % (names + 1), true);
        const bool of_values = random() % 2 == 0;
        std::set<std::uint64_t> ends;
        for (std::size_t left = random() % 4; left > 0; --left) ends.insert(random() % values);
        std::uint64_t before = 0;  // the first value that is not in an earlier range
        for (const std::uint64_t last : ends) {
            const std::uint64_t first = of_values ? last : before + random() % (last - before + 1);
            item.ranges.emplace_back(first, last);
            before = last + 1;
        }
    }
    return query;
}

template <class Row>
OwnedRows rows_of_parts(const std::vector<Row>& parts)
{
    Words words;
    std::vector<std::uint64_t> offsets{0};
    for (const Row& part : parts) {
        const Words of_part = words_of(part);
        words.insert(words.end(), of_part.begin(), of_part.end());
        offsets.push_back(words.size());
    }
    RowView rows;
    rows.count = parts.size();
    rows.offsets = offsets.data();
    rows.words = words.data();
    return OwnedRows(rows);
}

inline OwnedRows random_queries(std::size_t count, std::size_t most, std::size_t names, std::uint64_t values,
                                unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<AttributeQuery> queries(count);
    for (AttributeQuery& query : queries) query = random_query(random, most, names, values);
    return rows_of_parts(queries);
}

// The containers of words.
inline Set set_of(std::span<const std::uint32_t> words)
{
    Set set;
    for (std::size_t at = 0; at < words.size(); at += 2) set.insert(part_number(words.data() + at));
    return set;
}

inline Attributes attributes_of(std::span<const std::uint32_t> words)
{
    Attributes attributes;
    for (std::size_t at = 0; at < words.size(); at += 4)
        attributes[part_number(words.data() + at)] = part_number(words.data() + at + 2);
    return attributes;
}

inline AttributeQuery query_of(std::span<const std::uint32_t> words)
{
    AttributeQuery query;
    for (std::size_t at = 0; at < words.size();) {
        QueryItem& item = query.emplace_back(QueryItem{part_number(words.data() + at), {}});
        const bool of_values = (words[at + 2] & is_range) == 0;
        std::uint32_t ranges = words[at + 2] & ~is_range;
        for (at += 3; ranges > 0; --ranges, at += of_values ? 2 : 4)
            item.ranges.emplace_back(part_number(words.data() + at),
                                     part_number(words.data() + at + (of_values ? 0 : 2)));
    }
    return query;
}

// Distances by definition.
inline double plain_overlap(const Set& a, const Set& b)
{
    return -static_cast<double>(std::ranges::count_if(a, [&](std::uint64_t element) { return b.contains(element); }));
}

inline double plain_set_jaccard(const Set& a, const Set& b)
{
    const double common = -plain_overlap(a, b);
    const double all = static_cast<double>(a.size() + b.size()) - common;
    return all == 0 ? 0 : 1 - common / all;
}

inline double plain_overlap(const AttributeQuery& query, const Attributes& row)
{
    int matched = 0;
    for (const QueryItem& item : query) {
        const auto found = row.find(item.name);
        if (found == row.end()) continue;
        const std::uint64_t value = found->second;
        const auto contains = [value](const auto& range) { return range.first <= value && value <= range.second; };
        matched += std::ranges::any_of(item.ranges, contains) ? 1 : 0;
    }
    return -matched;
}

inline OwnedRows random_sets(std::size_t count, std::size_t most, std::uint64_t universe, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Set> sets(count);
    for (Set& set : sets) set = random_set(random, most, universe);
    return rows_of_parts(sets);
}

inline OwnedRows random_attribute_sets(std::size_t count, std::size_t names, std::uint64_t values, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Attributes> rows(count);
    for (Attributes& row : rows) row = random_attributes(random, names, values);
    return rows_of_parts(rows);
}

}  // namespace pgwarp::test
