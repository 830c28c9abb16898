// The table of rows' places in a list: look-ups one by one, and of many rows at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "methods/graph/graph.h"
#include "methods/rows/place_table.h"

namespace pgwarp::test
{
namespace
{

using Places = std::vector<std::pair<std::size_t, std::uint32_t>>;

std::vector<std::uint32_t> different_rows(std::size_t count, std::uint32_t most, std::mt19937& random)
{
    std::set<std::uint32_t> rows;
    while (rows.size() < count) rows.insert(random() % most);
    std::vector<std::uint32_t> all(rows.begin(), rows.end());
    std::shuffle(all.begin(), all.end(), random);
    return all;
}

TEST(PlaceTable, FindsOfManyWhatItFindsOneByOne)
{
    std::mt19937 random(1);
    PlaceTable table;
    for (const std::size_t listed : {0, 1, 48, 3000}) {  // 3,000 rows share slots
        const std::vector<std::uint32_t> list = different_rows(listed, 6000, random);
        table.assign(list);
        for (const std::size_t asked : {0, 1, 48, 63, 64, 65, 128, 500}) {
            std::vector<std::uint32_t> rows = different_rows(asked, 6000, random);
            if (asked > 40) std::fill(rows.end() - 30, rows.end(), no_neighbour);
            Places expected;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const auto at = std::find(list.begin(), list.end(), rows[i]);
                if (at != list.end()) expected.emplace_back(i, static_cast<std::uint32_t>(at - list.begin()));
            }
            Places found;
            table.for_those_there(rows, [&](std::size_t i, std::uint32_t place) { found.emplace_back(i, place); });
            EXPECT_EQ(found, expected) << listed << " rows, " << asked << " asked for";
        }
    }
}

}  // namespace
}  // namespace pgwarp::test
