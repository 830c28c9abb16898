// Sets, attributes and queries of attributes for tests: as containers, and as the words of rows.
#pragma once

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

template <class Row>
OwnedRows rows_of_parts(const std::vector<Row>& parts)
{
    OwnedRows rows;
    for (const Row& part : parts) {
        const Words words = words_of(part);
        const std::uint64_t offsets[2] = {0, words.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = words.data();
        rows.append(row);
    }
    return rows;
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
