// The bound of the items of a scan (ivfadc/layout.h), against the items of random probes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ivfadc/layout.h"

namespace pgwarp::test
{
namespace
{

using cuda::ivfadc::ListLayout;
using cuda::rows::whole_groups;

constexpr std::uint64_t item_queries = 64;
constexpr std::uint64_t item_rows = 1024;

// Lists of very different lengths: list i has 1 / (i + 1) of the rows of the first.
std::vector<std::uint32_t> skewed_rows(std::size_t lists, std::size_t longest)
{
    std::vector<std::uint32_t> list_of_row;
    for (std::size_t list = 0; list < lists; ++list) {
        list_of_row.insert(list_of_row.end(), longest / (list + 1), static_cast<std::uint32_t>(list));
    }
    return list_of_row;
}

// The items of a phase as the device counts them (probes.cu), of the pairs of each list.
std::uint64_t items_of(const std::vector<std::uint64_t>& pairs, const ListLayout& layout)
{
    std::uint64_t items = 0;
    for (std::size_t list = 0; list < pairs.size(); ++list) {
        const std::uint64_t slots = whole_groups(layout.length[list]);
        items += (pairs[list] + item_queries - 1) / item_queries * ((slots + item_rows - 1) / item_rows);
    }
    return items;
}

// Probes are drawn so that long lists come early, as queries that are near the same rows draw them.
std::uint64_t items_of_probes(const ListLayout& layout, std::size_t count, std::size_t probes, std::size_t first_ranks,
                              bool longest_first, std::mt19937& random)
{
    const std::size_t lists = layout.length.size();
    std::vector<std::uint64_t> near(lists);
    std::vector<std::uint64_t> far(lists);
    std::vector<std::uint32_t> order(lists);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t q = 0; q < count; ++q) {
        if (!longest_first) std::shuffle(order.begin(), order.end(), random);
        for (std::size_t rank = 0; rank < probes; ++rank) ++(rank < first_ranks ? near : far)[order[rank]];
    }
    return items_of(near, layout) + items_of(far, layout);
}

TEST(ScanItems, AreBounded)
{
    std::mt19937 random(7);
    for (const std::size_t longest : {1, 40, 3000, 100000}) {
        for (const std::size_t lists : {1, 7, 300}) {
            const ListLayout layout = ListLayout::arrange(skewed_rows(lists, longest), lists);
            for (const std::size_t count : {1, 5, 64, 65, 700}) {
                for (const std::size_t probes : {std::size_t{1}, (lists + 2) / 3, lists}) {
                    const std::uint64_t most = cuda::ivfadc::most_items(layout, count, probes, item_queries, item_rows);
                    for (const std::size_t first_ranks : {std::size_t{1}, probes}) {
                        for (const bool longest_first : {false, true}) {
                            EXPECT_LE(items_of_probes(layout, count, probes, first_ranks, longest_first, random), most)
                                << longest << " rows, " << lists << " lists, " << count << " queries, " << probes
                                << " probes";
                        }
                    }
                }
            }
        }
    }
}

// A list that is a thousand times as long as the others counts once.
TEST(ScanItems, OfOneLongListAreFew)
{
    std::vector<std::uint32_t> list_of_row(1 << 20, 0);
    for (std::uint32_t list = 1; list < 1000; ++list) list_of_row.insert(list_of_row.end(), 1000, list);
    const ListLayout layout = ListLayout::arrange(list_of_row, 1000);
    EXPECT_LT(cuda::ivfadc::most_items(layout, 111, 500, item_queries, item_rows), 10000U);
}

// Products of counts exceed 32 bits.
TEST(ScanItems, AreCountedIn64Bits)
{
    ListLayout layout;
    layout.most_slots.assign(1001, 0);
    for (std::uint64_t i = 1; i <= 1000; ++i) layout.most_slots[i] = i << 21;
    EXPECT_EQ(cuda::ivfadc::most_items(layout, 1 << 20, 1000, item_queries, item_rows),
              (std::uint64_t{1} << 20) * 1000 * 2048 / 64 + 2 * 1000 * 2048);
}

}  // namespace
}  // namespace pgwarp::test
