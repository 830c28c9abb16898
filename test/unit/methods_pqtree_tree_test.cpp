// The tree of pqtree, its bins and their order, and lists of rows, against references.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "../../bench/pqtree/bin_orders.h"
#include "methods/pqtree/bin_lists.h"
#include "methods_fixture.h"
#include "pqtree_reference.h"

namespace pgwarp::test::pqtree_tree_test
{
namespace
{

using namespace bench::pqtree;

constexpr std::size_t dimensions = 23;  // no multiple of anything

TEST(PqtreeTree, SplitsDimensionsIntoPieces)
{
    const LineShape shape{{dimensions, 2, 8, 4}, 6};
    EXPECT_EQ(shape.tree.begin(1), 12U);
    EXPECT_EQ(shape.begin(0), 0U);
    EXPECT_EQ(shape.begin(3), 12U);
    EXPECT_EQ(shape.begin(6), dimensions);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_GE(shape.width(i), 3U);
}

TEST(PqtreeTree, AssignsTheNearestLeafOfTheNearestCentroid)
{
    const TreeShape shape{dimensions, 3, 12, 5};
    const std::vector<float> rows = random_rows(3000, dimensions, 5);
    ThreadPool pool(2);
    const ProductTree tree = train_tree(shape, rows, 7, pool);
    const std::size_t count = rows.size() / dimensions;
    std::vector<std::uint16_t> leaves(count * shape.parts);
    assign_leaves(tree, rows, leaves, pool);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows.data() + i * dimensions;
        for (std::size_t part = 0; part < shape.parts; ++part) {
            const std::size_t begin = shape.begin(part);
            const std::size_t end = shape.begin(part + 1);
            const auto to = [&](const std::vector<float>& level, std::size_t number) {
                return squared(row, level.data() + number * dimensions, begin, end);
            };
            const std::size_t leaf = leaves[i * shape.parts + part];
            const std::size_t centroid = leaf / shape.k2;
            const double slack = 1e-4 * to(tree.level1, centroid) + 1e-4;
            for (std::size_t c = 0; c < shape.k1; ++c) EXPECT_LE(to(tree.level1, centroid), to(tree.level1, c) + slack);
            for (std::size_t j = 0; j < shape.k2; ++j)
                EXPECT_LE(to(tree.level2, leaf), to(tree.level2, centroid * shape.k2 + j) + slack);
        }
    }
}

TEST(PqtreeTree, IsTheSameOnAnyNumberOfThreads)
{
    const std::vector<float> rows = random_rows(2000, dimensions, 3);
    ThreadPool one(1);
    ThreadPool three(3);
    const ProductTree a = train_tree({dimensions, 2, 16, 4}, rows, 7, one);
    const ProductTree b = train_tree({dimensions, 2, 16, 4}, rows, 7, three);
    EXPECT_EQ(a.level1, b.level1);
    EXPECT_EQ(a.level2, b.level2);
    EXPECT_EQ(choose_lines(a, 6, rows, one).ends, choose_lines(b, 6, rows, three).ends);
    EXPECT_EQ(choose_lines(a, 6, rows, one).places, choose_lines(b, 6, rows, three).places);
}

RankedParts random_parts(std::size_t parts, std::size_t leaves, unsigned seed, bool with_ties)
{
    std::mt19937 random(seed);
    std::exponential_distribution<float> steps(1);
    RankedParts ranked(parts);
    for (auto& part : ranked) {
        float score = 10 * steps(random);
        for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
            part.push_back({with_ties ? std::floor(score) : score, leaf});
            score += steps(random);
        }
        if (!with_ties) std::ranges::shuffle(part, random);
        for (std::uint32_t i = 0; i < leaves; ++i) part[i].leaf = i;
        std::ranges::sort(part,
                          [](auto a, auto b) { return a.score != b.score ? a.score < b.score : a.leaf < b.leaf; });
    }
    return ranked;
}

double sum_of(const RankedParts& parts, const BinRanks& ranks)
{
    double sum = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) sum += parts[part][ranks[part]].score;
    return sum;
}

struct ScoredBin {
    float score;
    std::uint64_t bin;
};

// Writes the runs of the nearest bins out.
std::vector<ScoredBin> bins_of(const RankedParts& ranked, std::size_t leaves, std::size_t wanted)
{
    NearestBins nearest;
    nearest_bins(ranked, leaves, wanted, wanted, nearest);
    std::vector<ScoredBin> bins;
    for (const BinRun& run : nearest.runs) {
        for (std::size_t j = 0; j < run.end; ++j)
            bins.push_back({run.score + ranked.back()[j].score, run.first + ranked.back()[j].leaf});
    }
    EXPECT_EQ(bins.size(), nearest.count);
    return bins;
}

TEST(PqtreeBins, DijkstraOrdersAllBins)
{
    for (const std::size_t parts : {1, 2, 3}) {
        const RankedParts ranked = random_parts(parts, 9, 11, false);
        const auto all = static_cast<std::size_t>(std::pow(9, parts));
        const std::vector<BinRanks> order = dijkstra_order(ranked, 10 * all);
        ASSERT_EQ(order.size(), all);
        EXPECT_EQ(std::set<BinRanks>(order.begin(), order.end()).size(), all);
        for (std::size_t i = 1; i < all; ++i) EXPECT_LE(sum_of(ranked, order[i - 1]), sum_of(ranked, order[i]));
    }
}

// The nearest bins are those of the exact order, up to the rounding of sums in float.
TEST(PqtreeBins, NearestBinsAreThoseOfDijkstra)
{
    for (const std::size_t parts : {1, 2, 3, 4}) {
        for (const std::size_t wanted : {1, 7, 60, 500, 5000}) {
            const std::size_t leaves = parts == 4 ? 9 : 40;
            const RankedParts ranked = random_parts(parts, leaves, 13, false);
            const std::vector<BinRanks> order = dijkstra_order(ranked, wanted);
            const std::vector<ScoredBin> bins = bins_of(ranked, leaves, wanted);
            ASSERT_EQ(bins.size(), order.size());
            std::set<std::uint64_t> found;
            double farthest = 0;
            for (const ScoredBin& bin : bins) {
                found.insert(bin.bin);
                std::uint64_t digits = bin.bin;
                double sum = 0;
                for (std::size_t part = parts; part-- > 0; digits /= leaves) {
                    const auto leaf = std::ranges::find(ranked[part], digits % leaves, &RankedLeaf::leaf);
                    sum += leaf->score;
                }
                EXPECT_NEAR(bin.score, sum, 1e-4);
                farthest = std::max(farthest, sum);
            }
            EXPECT_EQ(found.size(), bins.size());
            EXPECT_NEAR(farthest, sum_of(ranked, order.back()), 1e-4);
        }
    }
}

// Equal sums are cut so that the number is exact.
TEST(PqtreeBins, EqualScoresAreCut)
{
    const RankedParts ranked = random_parts(2, 50, 17, true);
    for (const std::size_t wanted : {3, 100, 777, 2400}) {
        const std::vector<ScoredBin> bins = bins_of(ranked, 50, wanted);
        EXPECT_EQ(bins.size(), wanted);
        float farthest = 0;
        for (const ScoredBin& bin : bins) farthest = std::max(farthest, bin.score);
        EXPECT_NEAR(farthest, sum_of(ranked, dijkstra_order(ranked, wanted).back()), 1e-4);
    }
}

TEST(PqtreeBins, SlopeOrdersAreMonotone)
{
    const SlopeOrder orders(40, 300);
    for (std::size_t slope = 0; slope < SlopeOrder::slopes; ++slope) {
        const auto order = orders.order(slope);
        ASSERT_EQ(order.size(), 300U);
        std::set<SlopeOrder::Pair> passed;
        for (const auto& [i, j] : order) {
            if (i > 0) {
                EXPECT_TRUE(passed.contains({static_cast<std::uint16_t>(i - 1), j}));
            }
            if (j > 0) {
                EXPECT_TRUE(passed.contains({i, static_cast<std::uint16_t>(j - 1)}));
            }
            passed.insert({i, j});
        }
        std::size_t deepest[2] = {0, 0};
        for (const auto& [i, j] : order) {
            deepest[0] = std::max<std::size_t>(deepest[0], i);
            deepest[1] = std::max<std::size_t>(deepest[1], j);
        }
        if (slope == 0) {
            EXPECT_LT(deepest[0], deepest[1]);
        }
    }
}

// A part whose scores grow faster is followed less deep.
TEST(PqtreeBins, TheSlopeFollowsTheGrowth)
{
    std::vector<RankedLeaf> slow;
    std::vector<RankedLeaf> fast;
    for (std::uint32_t i = 0; i < 100; ++i) {
        slow.push_back({std::sqrt(static_cast<float>(i)), i});
        fast.push_back({1.5F * std::sqrt(static_cast<float>(i)), i});
    }
    EXPECT_EQ(SlopeOrder::choose(slow, slow), 5U);
    EXPECT_LT(SlopeOrder::choose(fast, slow), 5U);
    EXPECT_GT(SlopeOrder::choose(slow, fast), 5U);
    // Here the order by slope is that of the sums, but for the rounding of the slope.
    const SlopeOrder orders(100, 400);
    const auto order = orders.order(SlopeOrder::choose(fast, slow));
    std::set<SlopeOrder::Pair> passed(order.begin(), order.end());
    std::size_t common = 0;
    for (const BinRanks& ranks : dijkstra_order({fast, slow}, 400)) common += passed.count({ranks[0], ranks[1]});
    EXPECT_GE(common, 380U);
}

// Every row is in the list of its slot once, in the order that BinSlots states, and among the rows of its bin alone,
// also where bins are hashed.
TEST(PqtreeLists, HoldEveryRowOnce)
{
    for (const std::size_t parts : {2, 4}) {
        const TreeShape shape{32, parts, 16, 8};
        const std::vector<float> rows = random_rows(2000, 32, 21);
        ThreadPool pool(2);
        const ProductTree tree = train_tree(shape, rows, 7, pool);
        std::vector<std::uint16_t> leaves(2000 * parts);
        assign_leaves(tree, rows, leaves, pool);
        std::vector<std::uint8_t> codes(2000 * 2 * parts);
        for (std::size_t i = 0; i < 2000; ++i)
            for (std::size_t part = 0; part < parts; ++part)
                set_leaf(codes.data() + i * 2 * parts, part, leaves[i * parts + part]);
        const BinLists lists(shape, codes, 2 * parts, pool);
        EXPECT_EQ(lists.slots().hashed, parts == 4);
        std::set<std::uint32_t> seen;
        std::set<std::uint64_t> filled;
        for (std::uint64_t slot = 0; slot < lists.slots().slots; ++slot) {
            std::pair<std::uint64_t, std::uint32_t> before{0, 0};
            for (std::uint32_t position = lists.begin(slot); position < lists.end(slot); ++position) {
                const std::uint32_t row = lists.row_at(position);
                EXPECT_TRUE(seen.insert(row).second);
                const std::uint64_t bin = bin_of(leaves.data() + row * parts, parts, shape.leaves());
                EXPECT_EQ(lists.slots().slot(bin), slot);
                EXPECT_LE(before, std::pair(bin, row));
                before = {bin, row};
                const PositionRange of_bin = lists.rows_of(bin);
                EXPECT_TRUE(of_bin.begin <= position && position < of_bin.end);
                for (std::uint32_t i = of_bin.begin; i < of_bin.end; ++i) {
                    const std::uint16_t* other = leaves.data() + lists.row_at(i) * parts;
                    EXPECT_EQ(bin_of(other, parts, shape.leaves()), bin);
                }
                filled.insert(bin);
            }
        }
        EXPECT_EQ(seen.size(), 2000U);
        for (std::uint64_t bin = 0; bin < 10000; ++bin) {
            const PositionRange of_bin = lists.rows_of(bin);
            EXPECT_EQ(of_bin.begin < of_bin.end, filled.contains(bin)) << bin;
        }
        codes[1] = 255;
        EXPECT_THROW(BinLists(shape, codes, 2 * parts, pool), BadRequest);
    }
}

}  // namespace
}  // namespace pgwarp::test::pqtree_tree_test
