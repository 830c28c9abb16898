// Lists of words for tests.
#pragma once

#include <random>
#include <set>
#include <vector>

#include "methods/rows/owned_rows.h"

namespace pgwarp::test
{

// Lists of up to `most` words below `range`, weighted or not; some are empty.
inline OwnedRows random_lists(std::size_t count, std::size_t most, std::uint32_t range, bool weighted, unsigned seed)
{
    std::mt19937 random(seed);
    OwnedRows lists;
    for (std::size_t i = 0; i < count; ++i) {
        std::set<std::uint32_t> words;
        for (std::size_t left = random() % (most + 1); left > 0; --left) words.insert(random() % range);
        const std::vector<std::uint32_t> ascending(words.begin(), words.end());
        std::vector<float> weights;
        for (std::size_t at = 0; at < ascending.size(); ++at)
            weights.push_back(static_cast<float>(static_cast<int>(random() % 64) - 16) / 8);
        const std::uint64_t offsets[2] = {0, ascending.size()};
        static constexpr float no_weight = 0;
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = ascending.data();
        if (weighted) row.weights = weights.empty() ? &no_weight : weights.data();
        lists.append(row);
    }
    return lists;
}

}  // namespace pgwarp::test
