// Searches by matrix tiles where scores tell little: equal and nearly equal rows, values at the ends of the range, and
// predicates at the edges of codes and of groups. An answer is right or there is none.
#include <cfloat>
#include <cmath>
#include <random>

#include "tiled_index.h"

namespace pgwarp::test
{
namespace
{

constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine};

// Scores do not tell equal rows apart: such queries have no answer, or the right one.
TEST(PassingTiles, EqualRowsProveNothingFalse)
{
    constexpr std::uint32_t dimensions = 24;
    constexpr std::uint32_t count = 12000;  // in more groups of positions than are compared for any k
    const std::vector<float> some = random_rows(3, dimensions, 15);
    std::vector<float> rows;
    for (std::size_t row = 0; row < count; ++row)
        rows.insert(rows.end(), some.begin() + static_cast<std::ptrdiff_t>(row % 3 * dimensions),
                    some.begin() + static_cast<std::ptrdiff_t>((row % 3 + 1) * dimensions));
    for (const Metric metric : metrics) {
        TiledIndex index(metric, dimensions, rows, false);
        for (const std::uint32_t k : {1U, 10U, 200U}) {
            const std::size_t unproved =
                expect_right(index, ask(of_all_kinds(count), dimensions, 60, 16), dimensions, k);
            EXPECT_GT(unproved, 0U);
            EXPECT_LT(unproved, 60U);
        }
    }
}

// Rows that halves cannot tell apart, far from the origin or in the last bits of their elements.
TEST(PassingTiles, NearlyEqualRowsProveNothingFalse)
{
    constexpr std::uint32_t dimensions = 16;
    constexpr std::uint32_t count = 6000;
    for (const Metric metric : metrics) {
        for (const float part : {1e-2F, 1e-4F, 1e-6F}) {
            for (const float offset : {0.0F, 1000.0F}) {
                std::vector<float> rows = random_rows(count, dimensions, 37);
                for (std::size_t i = 0; i < rows.size(); ++i)
                    rows[i] = offset + rows[i % dimensions] + part * rows[i] * static_cast<float>(i % 3);
                for (const bool halves : {false, true}) {
                    if (halves && metric == Metric::cosine) continue;
                    std::vector<float> wide;
                    constexpr std::uint32_t padded = 64;
                    for (std::size_t i = 0; halves && i < std::size_t{count} * padded; ++i)
                        wide.push_back(rows[i / padded * dimensions + i % dimensions]);
                    const std::uint32_t width = halves ? padded : dimensions;
                    TiledIndex index(metric, width, halves ? wide : rows, halves);
                    Asked asked = ask(of_all_kinds(count), width, 36, 38);
                    for (std::size_t i = 0; i < 12 * width; ++i) asked.queries[i] = index.rows()[i + 50 * width];
                    for (std::size_t i = 12 * width; i < 24 * width; ++i) asked.queries[i] += offset;
                    for (const std::uint32_t k : {1U, 10U, 100U}) {
                        SCOPED_TRACE(name_of(metric, width, count, 36, k) + " part " + std::to_string(part));
                        expect_right(index, asked, width, k);
                    }
                }
            }
        }
    }
}

// Rows of very different lengths, and queries whose scores may overflow.
TEST(PassingTiles, HugeAndTinyValues)
{
    constexpr std::uint32_t dimensions = 8;
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        for (const float size : {1e-30F, 1e-6F, 1e6F, 1e18F}) {
            SCOPED_TRACE("size " + std::to_string(size));
            std::vector<float> rows = random_rows(2100, dimensions, 17);
            for (std::size_t i = 0; i < rows.size(); ++i)
                rows[i] = std::clamp(rows[i] / 4, -3.0F, 3.0F) * (i / dimensions % 3 == 0 ? 1.0F : size);
            TiledIndex index(metric, dimensions, rows, false);
            Asked asked = ask(of_all_kinds(2100), dimensions, 40, 18);
            for (std::size_t i = 0; i < 8 * dimensions; ++i) asked.queries[i] = rows[i];
            for (std::size_t i = 8 * dimensions; i < 16 * dimensions; ++i) asked.queries[i] *= 1e36F;
            for (std::size_t i = 16 * dimensions; i < 18 * dimensions; ++i) asked.queries[i] = 0;
            for (std::size_t i = 18 * dimensions; i < 20 * dimensions; ++i) asked.queries[i] = 1e-40F;
            expect_right(index, asked, dimensions, 10);
        }
    }
}

// Sizes at both ends of the range of single precision.
TEST(PassingTiles, SubnormalAndLargestValues)
{
    constexpr std::uint32_t dimensions = 8;
    constexpr std::uint32_t count = 2100;
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        for (const float size : {1e-44F, 1e-39F, 1e-37F, 1e37F, 5e37F}) {
            for (const float asked_size : {1e-44F, 1e-39F, 1.0F, 5e37F}) {
                SCOPED_TRACE(name_of(metric, dimensions, count, 24, 10) + " size " + std::to_string(std::log10(size)) +
                             " asked " + std::to_string(std::log10(asked_size)));
                std::vector<float> rows = random_rows(count, dimensions, 39);
                for (float& element : rows) element = std::clamp(element, -4.0F, 4.0F) * size;
                TiledIndex index(metric, dimensions, rows, false);
                Asked asked = ask(of_all_kinds(count), dimensions, 24, 40);
                for (float& element : asked.queries) element = std::clamp(element, -4.0F, 4.0F) * asked_size;
                expect_right(index, asked, dimensions, 10);
            }
        }
    }
}

TEST(PassingTiles, CosineOfLongAndShortQueries)
{
    constexpr std::uint32_t dimensions = 12;
    constexpr std::uint32_t count = 3000;
    std::vector<float> rows = random_rows(count, dimensions, 41);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= i / dimensions % 2 == 0 ? 1e-12F : 1e12F;
    TiledIndex index(Metric::cosine, dimensions, rows, false);
    for (const float size : {1e-36F, 1e-18F, 1e-9F, 1.0F, 1e9F, 1e18F, 1e37F}) {
        SCOPED_TRACE(std::log10(size));
        Asked asked = ask(of_all_kinds(count), dimensions, 60, 42);
        for (float& element : asked.queries) element = std::clamp(element, -4.0F, 4.0F) * size;
        expect_right(index, asked, dimensions, 10);
    }
}

// Ranges that touch, reach the first and the last code, or lie behind all codes; columns of as many codes as a table
// has, and of one more.
TEST(PassingTiles, RangesAtTheEdges)
{
    constexpr std::uint32_t dimensions = 4;
    constexpr std::uint64_t last = ~std::uint64_t{0};
    for (const std::uint32_t count : {16384U, 16385U}) {
        TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 33), false);
        std::vector<Predicate> own;
        for (std::uint32_t column = 0; column < TiledIndex::columns; ++column) {
            own.push_back(Predicate().where(column, 0, 0));
            own.push_back(Predicate().where(column, last, last));
            own.push_back(Predicate().where(column, 0, last));
            own.push_back(Predicate().where(column, {{0, 3}, {4, 6}, {7, 7}}));
            own.push_back(Predicate().where(column, {{0, 0}, {last, last}}));
            own.push_back(Predicate().where(column, {{count - 1, count - 1}, {count, last}}));
            own.push_back(Predicate().where(column, {{last - 1, last - 1}, {last, last}}));
            own.push_back(Predicate().where(column, 1, last - 1));
        }
        own.push_back(Predicate().where(0, {}).where(1, 0, last).where(2, 0, last));
        own.push_back(Predicate().where(0, 0, last).where(1, 0, last).where(2, {}));
        own.push_back(Predicate().where(0, 16383, 16384).where(2, 0, last));
        EXPECT_EQ(expect_right(index, ask(own, dimensions, own.size(), 34), dimensions, 10), 0U);
    }
}

// The numbers of distinct predicates about those of a group, a block of queries and their multiples.
TEST(PassingTiles, NumbersOfPredicates)
{
    constexpr std::uint32_t dimensions = 8;
    constexpr std::uint32_t count = 700;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 35), false);
    for (const std::uint64_t number : {31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 2100}) {
        SCOPED_TRACE(number);
        std::mt19937_64 random(number);
        std::vector<Predicate> own;
        for (std::uint64_t q = 0; q < number; ++q) {
            const std::uint64_t code = random() % count;
            if (q % 4 == 0) own.push_back(Predicate().where(0, code, code + random() % 400));
            if (q % 4 == 1) own.push_back(Predicate().where(1, q % 10, 9).where(2, random(), ~std::uint64_t{0}));
            if (q % 4 == 2)
                own.push_back(Predicate().where(2, {{q, random() / 4}, {~std::uint64_t{0} - random() / 4, ~q}}));
            if (q % 4 == 3) own.push_back(Predicate().where(0, {{q % 50, 60}, {code + 100, code + 300}}));
        }
        EXPECT_EQ(expect_right(index, ask(own, dimensions, number, 36), dimensions, 10), 0U);
    }
}

}  // namespace
}  // namespace pgwarp::test
