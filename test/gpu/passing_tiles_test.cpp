// Filtered searches by matrix tiles that the queries of a batch share: each answer is that of the CPU's canonical
// distance to all rows that live and pass, to the bit, or there is none. Where scores tell rows apart there is one.
// Shapes of rows and batches.
#include <random>

#include "tiled_index.h"

namespace pgwarp::test
{
namespace
{

constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine};

TEST(PassingTiles, FewRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {3U, 64U, 96U}) {
            for (const std::uint32_t count : {1U, 31U, 32U, 33U, 127U, 128U, 129U, 1000U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, count), false);
                const auto predicates = of_all_kinds(count);
                for (const std::uint32_t k : {1U, 10U, 100U, 512U}) {
                    const std::uint32_t most = std::min(k, count);
                    SCOPED_TRACE(name_of(metric, dimensions, count, 30, most));
                    EXPECT_EQ(expect_right(index, ask(predicates, dimensions, 30, k), dimensions, most), 0U);
                }
            }
        }
    }
}

TEST(PassingTiles, BatchesOfAnyLength)
{
    constexpr std::uint32_t dimensions = 64;
    TiledIndex index(Metric::l2, dimensions, random_rows(3000, dimensions, 1), false);
    const auto predicates = of_all_kinds(3000);
    for (const std::size_t queries : {1, 2, 5, 63, 64, 65, 128, 255, 256, 257, 300}) {
        SCOPED_TRACE(name_of(Metric::l2, dimensions, 3000, queries, 10));
        EXPECT_EQ(expect_right(index, ask(predicates, dimensions, queries, 7), dimensions, 10), 0U);
    }
}

// Wide rows stream the queries beside them.
TEST(PassingTiles, WideRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {128U, 256U, 300U, 768U, 1536U}) {
            TiledIndex index(metric, dimensions, random_rows(2500, dimensions, 2), false);
            SCOPED_TRACE(name_of(metric, dimensions, 2500, 70, 10));
            EXPECT_EQ(expect_right(index, ask(of_all_kinds(2500), dimensions, 70, 8), dimensions, 10), 0U);
        }
    }
}

// The values are bounds by halves. Positions behind the rows hold NaN.
TEST(PassingTiles, RowsAsHalves)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {64U, 128U, 768U}) {
            for (const std::uint32_t count : {33U, 128U, 2500U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, 3), true);
                for (const std::uint32_t k : {1U, 10U, 100U}) {
                    SCOPED_TRACE(name_of(metric, dimensions, count, 70, k));
                    const std::uint32_t most = std::min(k, count);
                    EXPECT_EQ(expect_right(index, ask(of_all_kinds(count), dimensions, 70, 9), dimensions, most), 0U);
                }
            }
        }
    }
}

TEST(PassingTiles, ManyRows)
{
    constexpr std::uint32_t dimensions = 96;
    constexpr std::uint32_t count = 100000;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 4), false);
    for (const std::uint32_t k : {1U, 10U, 100U, 512U}) {
        SCOPED_TRACE(name_of(Metric::l2, dimensions, count, 300, k));
        EXPECT_EQ(expect_right(index, ask(of_all_kinds(count), dimensions, 300, k), dimensions, k, 11), 0U);
    }
}

// Each query has a predicate of its own, so that there are many groups of them.
TEST(PassingTiles, PredicatesOfTheirOwn)
{
    constexpr std::uint32_t dimensions = 32;
    constexpr std::uint32_t count = 20000;
    TiledIndex index(Metric::inner_product, dimensions, random_rows(count, dimensions, 5), false);
    std::mt19937_64 random(6);
    std::vector<Predicate> own;
    for (std::uint64_t q = 0; q < 300; ++q) {
        Ranges ranges;
        for (std::uint64_t code = random() % 50; code < count; code += 50 + random() % 300)
            ranges.push_back({code, code + random() % 50});
        if (q % 3 == 0) {
            own.push_back(Predicate().where(0, ranges));
        } else if (q % 3 == 1) {
            own.push_back(Predicate().where(1, q % 10, q % 10).where(2, random(), ~std::uint64_t{0}));
        } else {
            own.push_back(Predicate().where(0, q, count - 7 * q));
        }
    }
    EXPECT_EQ(expect_right(index, ask(own, dimensions, 300, 10), dimensions, 10, 3), 0U);
}

TEST(PassingTiles, DeadRows)
{
    constexpr std::uint32_t dimensions = 64;
    for (const std::uint32_t count : {40U, 3000U}) {
        for (const bool halves : {false, true}) {
            TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 11), halves);
            const Asked asked = ask(of_all_kinds(count), dimensions, 70, 12);
            for (const std::uint32_t living : {2U, 7U}) {
                index.dead.assign((count + 63) / 64, ~std::uint64_t{0});
                for (std::uint32_t row = 0; row < count; ++row)
                    if (row % 7 < living) index.dead[row / 64] &= ~(std::uint64_t{1} << row % 64);
                EXPECT_EQ(expect_right(index, asked, dimensions, 10), 0U);
            }
            index.dead.assign((count + 63) / 64, ~std::uint64_t{0});
            for (const TiledIndex::Found& found : index.search(asked.queries, 10, asked.predicates)) {
                EXPECT_TRUE(found.proved);
                EXPECT_TRUE(found.rows.empty());
            }
        }
    }
}

// Little memory makes many chunks.
TEST(PassingTiles, LittleRoom)
{
    constexpr std::uint32_t dimensions = 16;
    TiledIndex index(Metric::l2, dimensions, random_rows(5000, dimensions, 13), false);
    const Asked asked = ask(of_all_kinds(5000), dimensions, 700, 14);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 5, 1), 0U);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 5, std::size_t{4} << 20), 0U);
}

// The tile kernel for other devices gives the same answers.
TEST(PassingTiles, WithoutWarpGroups)
{
    constexpr std::uint32_t dimensions = 128;
    TiledIndex index(Metric::l2, dimensions, random_rows(3000, dimensions, 19), false);
    shared_context().limit_shared_bytes(std::size_t{64} << 10);
    const std::size_t unproved = expect_right(index, ask(of_all_kinds(3000), dimensions, 130, 20), dimensions, 10);
    shared_context().limit_shared_bytes(std::size_t{256} << 10);
    EXPECT_EQ(unproved, 0U);
}

// Dimensions and numbers of rows that fill no tile, and rows of which many have the same score.
TEST(PassingTiles, OddShapes)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {1U, 2U, 17U, 65U}) {
            for (const std::uint32_t count : {1U, 2U, 95U, 4097U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, count + 1), false);
                for (const std::size_t queries : {1, 65}) {
                    for (const std::uint32_t k : {1U, 17U, 512U}) {
                        const std::uint32_t most = std::min(k, count);
                        SCOPED_TRACE(name_of(metric, dimensions, count, queries, most));
                        const Asked asked = ask(of_all_kinds(count), dimensions, queries, k);
                        const std::size_t unproved = expect_right(index, asked, dimensions, most);
                        // All rows lie in groups that are compared, or scores must tell rows apart.
                        const bool all_compared = count <= cuda::rows::compared_groups(most) * 32;
                        EXPECT_LE(unproved, all_compared ? 0 : passed_by_many(queries));
                    }
                }
            }
        }
    }
}

TEST(PassingTiles, TheWidestRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {2000U, 4000U, 16000U}) {
            TiledIndex index(metric, dimensions, random_rows(300, dimensions, 31), false);
            SCOPED_TRACE(name_of(metric, dimensions, 300, 13, 5));
            EXPECT_EQ(expect_right(index, ask(of_all_kinds(300), dimensions, 13, 32), dimensions, 5), 0U);
        }
    }
}

// More pairs than 32 bits count.
TEST(PassingTiles, ManyPairs)
{
    constexpr std::uint32_t dimensions = 16;
    constexpr std::uint32_t count = 1500000;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 43), false);
    const Asked asked = ask(of_all_kinds(count), dimensions, 6000, 44);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 601, std::size_t{8} << 30), 0U);
}

}  // namespace
}  // namespace pgwarp::test
