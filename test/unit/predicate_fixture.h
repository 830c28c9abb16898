// Predicates for tests: built term by term, or at random.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "protocol/attribute_codes.h"
#include "protocol/predicates.h"

namespace pgwarp::test
{

using Ranges = std::vector<CodeRange>;

class Predicate
{
public:
    // Columns ascend from term to term, ranges within a term.
    Predicate& where(std::uint32_t column, const Ranges& ranges)
    {
        ++words_[0];
        words_.push_back(column | std::uint64_t{ranges.size()} << 32);
        for (const CodeRange& range : ranges) {
            words_.push_back(range.first);
            words_.push_back(range.last);
        }
        return *this;
    }
    Predicate& where(std::uint32_t column, std::uint64_t first, std::uint64_t last)
    {
        return where(column, {{first, last}});
    }
    operator std::span<const std::uint64_t>() const { return words_; }
    const std::vector<std::uint64_t>& words() const { return words_; }

private:
    std::vector<std::uint64_t> words_{0};
};

// Codes of `columns` columns, with values below `values` in the first, ten times fewer in each after; the last column
// has NULLs too.
inline std::vector<std::uint64_t> random_attributes(std::size_t rows, std::size_t columns, std::uint64_t values,
                                                    unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> codes(rows * columns);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        std::uint64_t below = values;
        for (std::size_t column = 0; column < i % columns; ++column) below = std::max<std::uint64_t>(below / 10, 2);
        codes[i] = random() % below;
        if (i % columns + 1 == columns && random() % 5 == 0) codes[i] = null_code;
    }
    return codes;
}

// One range, some values, NULL, everything or nothing.
inline Ranges random_ranges(std::mt19937_64& random, std::uint64_t values)
{
    const std::uint64_t first = random() % values;
    switch (random() % 8) {
        case 0:
            return {};
        case 1:
            return {{0, null_code}};
        case 2:
            return {{null_code, null_code}};
        case 3:
            return {{0, largest_code}};
        case 4: {
            Ranges ranges;
            for (std::uint64_t code = first; code < values && ranges.size() < 5; code += 1 + random() % 7)
                ranges.push_back({code, code});
            return ranges;
        }
        case 5:
            return {{first, first + random() % 3}};
        default:
            return {{first, first + random() % values}};
    }
}

// One term or more, each of some column.
inline Predicate random_predicate(std::mt19937_64& random, std::uint32_t columns, std::uint64_t values)
{
    Predicate predicate;
    for (std::uint32_t column = 0; column < columns; ++column, values = std::max<std::uint64_t>(values / 10, 2))
        if (random() % columns == 0) predicate.where(column, random_ranges(random, values));
    return predicate;
}

}  // namespace pgwarp::test
