// Distances of bits against counting bit by bit.
#include <gtest/gtest.h>

#include <cstring>

#include "bit_fixture.h"
#include "numeric/distance.h"
#include "numeric_reference.h"

namespace pgwarp::test
{
namespace
{

constexpr Metric bit_metrics[] = {Metric::hamming, Metric::jaccard};

// Every routine for one query, and for a tile of it and the first row.
void compare_all(const std::vector<float>& rows, const std::vector<float>& query, std::size_t words)
{
    const std::size_t count = rows.size() / words;
    std::vector<float> two(query);
    two.insert(two.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(words));
    for (const Metric metric : bit_metrics) {
        std::vector<double> distances(count);
        std::vector<float> dense(count);
        std::vector<float> tile(2 * count);
        bit_distances(metric, query.data(), rows.data(), count, words, distances.data());
        scores(metric, query.data(), rows.data(), count, words, dense.data());
        score_tile(metric, two.data(), 2, rows.data(), nullptr, count, words, tile.data());
        for (std::size_t i = 0; i < count; ++i) {
            const float* row = rows.data() + i * words;
            const double wanted = naive_bit_distance(metric, query.data(), row, words);
            EXPECT_EQ(canonical_distance(metric, query.data(), row, words), wanted);
            EXPECT_EQ(distances[i], wanted);
            EXPECT_EQ(dense[i], static_cast<float>(wanted));
            EXPECT_LE(std::abs(dense[i] - wanted), score_error_bound(metric, words, 0, 0));
            EXPECT_EQ(score(metric, query.data(), row, words), static_cast<float>(wanted));
            EXPECT_EQ(tile[i], static_cast<float>(wanted));
            EXPECT_EQ(tile[count + i], static_cast<float>(naive_bit_distance(metric, rows.data(), row, words)));
        }
    }
}

class BitLengths : public testing::TestWithParam<std::size_t>
{
};

TEST_P(BitLengths, AllRoutinesAgreeWithCounting)
{
    const std::size_t bits = GetParam();
    const std::size_t words = words_of_bits(bits);
    const std::size_t count = bits > 10000 ? 9 : 37;
    for (const double density : {0.02, 0.5, 1.0}) {
        std::vector<float> rows = clustered_bits(count, bits, 7, 4, density, 0.3);
        std::fill_n(rows.begin(), 3 * words, 0.0F);  // among them some without ones
        const std::vector<float> query = clustered_bits(1, bits, 8, 1, density);
        reference::for_each_target([&](const char* target) {
            SCOPED_TRACE(target);
            compare_all(rows, query, words);
        });
    }
}

TEST_P(BitLengths, GatheredRowsAreThose)
{
    const std::size_t words = words_of_bits(GetParam());
    const std::vector<float> rows = clustered_bits(29, GetParam(), 9);
    const std::vector<std::uint32_t> ids = {28, 0, 13, 13, 7, 1, 2, 3, 4, 5, 27, 6};
    for (const Metric metric : bit_metrics) {
        std::vector<float> found(ids.size());
        std::vector<float> tile(ids.size());
        scores_gather(metric, rows.data(), rows.data(), ids.data(), ids.size(), words, found.data());
        score_tile_gather(metric, rows.data(), 1, rows.data(), ids.data(), nullptr, ids.size(), words, tile.data());
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const double wanted = naive_bit_distance(metric, rows.data(), rows.data() + ids[i] * words, words);
            EXPECT_EQ(found[i], static_cast<float>(wanted));
            EXPECT_EQ(tile[i], found[i]);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Bits, BitLengths, testing::Values(1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1000, 64000));

TEST(Bits, AnyNumberOfBytesIsReadAndNoMore)
{
    // Bytes that differ lie behind those that are compared.
    reference::for_each_target([](const char* target) {
        SCOPED_TRACE(target);
        for (std::size_t bytes = 0; bytes <= 200; ++bytes) {
            std::vector<unsigned char> a(bytes + 64, 0xff);
            std::vector<unsigned char> b(bytes + 64, 0xff);
            for (std::size_t i = 0; i < bytes; ++i) {
                a[i] = static_cast<unsigned char>(i * 37);
                b[i] = static_cast<unsigned char>(i * 101 + 5);
            }
            std::fill(b.begin() + static_cast<std::ptrdiff_t>(bytes), b.end(), 0);
            double differing = 0;
            for (std::size_t i = 0; i < bytes; ++i) differing += std::popcount(static_cast<unsigned>(a[i] ^ b[i]));
            EXPECT_EQ(bit_distance(Metric::hamming, a.data(), b.data(), bytes), differing) << bytes;
        }
    });
}

TEST(Bits, JaccardOfNothingInCommonIsOne)
{
    const unsigned char zero = 0;
    const unsigned char one = 1;
    EXPECT_EQ(bit_distance(Metric::jaccard, &zero, &zero, 1), 1);
    EXPECT_EQ(bit_distance(Metric::jaccard, &zero, &one, 1), 1);
    EXPECT_EQ(bit_distance(Metric::jaccard, &one, &one, 1), 0);
    EXPECT_EQ(bit_distance(Metric::jaccard, nullptr, nullptr, 0), 1);
}

}  // namespace
}  // namespace pgwarp::test
