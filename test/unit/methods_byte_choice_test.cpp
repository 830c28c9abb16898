// Whether a graph's rows are compared as bytes, and that CPU and device choose alike: both ask the same functions.
#include <gtest/gtest.h>

#include <algorithm>

#include "methods/graph/byte_choice.h"
#include "methods/graph/byte_rows.h"
#include "methods/graph/graph.h"
#include "methods_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t count = 600;
constexpr std::size_t degree = 8;

// Two rings, the halves of the rows.
GraphEdges ring()
{
    GraphEdges edges{degree, {}};
    constexpr std::size_t half = count / 2;
    for (std::uint32_t row = 0; row < count; ++row) {
        // The last place of some is unused.
        for (std::uint32_t n = 1; n <= degree; ++n) {
            edges.neighbours.push_back(n == degree && row % 3 == 0 ? no_neighbour
                                                                   : row / half * half + (row + n) % half);
        }
    }
    return edges;
}

// The two halves of the rows lie `apart` from each other in each dimension.
std::vector<float> clustered_rows(std::size_t dimensions, float apart)
{
    std::vector<float> rows = random_rows(count, dimensions, 7, 0.1F);
    for (std::size_t i = 0; i < rows.size() / 2; ++i) rows[i] += apart;
    return rows;
}

std::vector<float> mean_of(const std::vector<float>& rows, std::size_t dimensions)
{
    RowMean mean(dimensions);
    for (const std::uint32_t row : rows_of_mean(rows.size() / dimensions)) mean.add(rows.data() + row * dimensions);
    return mean.mean();
}

bool probe(Metric metric, const std::vector<float>& rows, std::size_t dimensions, const GraphEdges& edges)
{
    const std::vector<float> mean = mean_of(rows, dimensions);
    ByteProbe probe(metric, mean);
    for (const std::uint32_t row : rows_of_probe(count)) {
        std::vector<float> near;
        for (const std::uint32_t to : edges.of(row)) {
            if (to == no_neighbour) continue;
            near.insert(near.end(), rows.begin() + to * dimensions, rows.begin() + (to + 1) * dimensions);
        }
        probe.add(rows.data() + row * dimensions, near.data(), near.size() / dimensions);
    }
    return probe.tells_apart();
}

TEST(ByteChoice, KnowsWhereBytesTellNothing)
{
    ThreadPool pool(2);
    const GraphEdges edges = ring();
    for (const std::size_t dimensions : {32U, 33U, 100U}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
            for (const float apart : {0.0F, 5000.0F}) {
                std::vector<float> rows = clustered_rows(dimensions, apart);
                if (metric == Metric::cosine) normalise_rows(rows, dimensions);
                ByteRows bytes;
                bytes.build(
                    metric, dimensions, std::vector<std::uint32_t>{0, 1}, edges,
                    [&](std::uint32_t row, float* out) {
                        std::copy_n(rows.data() + row * dimensions, dimensions, out);
                    },
                    pool);
                const bool serves = probe(metric, rows, dimensions, edges);
                EXPECT_EQ(serves, !bytes.empty()) << dimensions << " " << apart;
                if (metric == Metric::l2 || apart == 0) {
                    EXPECT_EQ(serves, apart == 0) << dimensions << " " << apart;
                }
            }
        }
    }
}

TEST(ByteChoice, ComparesNoBytesOfFewDimensionsAndL1)
{
    EXPECT_TRUE(may_compare_bytes(Metric::l2, 32));
    EXPECT_TRUE(may_compare_bytes(Metric::cosine, 128));
    EXPECT_FALSE(may_compare_bytes(Metric::l2, 31));
    EXPECT_FALSE(may_compare_bytes(Metric::l1, 128));
    EXPECT_FALSE(may_compare_bytes(Metric::hamming, 128));
}

TEST(ByteChoice, SamplesInOrderAndAllOfFew)
{
    for (const std::size_t rows : {0U, 1U, 100U, 100000U}) {
        for (const auto& sample : {rows_of_mean(rows), rows_of_probe(rows)}) {
            EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
            EXPECT_EQ(sample.empty(), rows == 0);
            if (!sample.empty()) {
                EXPECT_LT(sample.back(), rows);
            }
        }
    }
    EXPECT_EQ(rows_of_mean(100).size(), 100U);
    EXPECT_EQ(rows_of_mean(100000).size(), 4096U);
    EXPECT_EQ(rows_of_probe(100000).size(), 256U);
}

TEST(ByteChoice, RowsWithFewNeighboursSayNothingAgainstBytes)
{
    const std::vector<float> mean(40, 0.0F);
    const std::vector<float> rows = random_rows(2, 40, 3);
    ByteProbe probe(Metric::l2, mean);
    probe.add(rows.data(), rows.data() + 40, 1);
    probe.add(rows.data(), nullptr, 0);
    EXPECT_TRUE(probe.tells_apart());
}

// The bias of l2 is the squared norm of the decoded bytes.
TEST(ByteChoice, EncodesRowsWithTheirTerms)
{
    constexpr std::size_t dimensions = 67;
    const std::vector<float> row = random_rows(1, dimensions, 9);
    const std::vector<float> mean = random_rows(1, dimensions, 10);
    std::vector<std::uint8_t> codes(dimensions);
    const ByteRowTerms terms = encode_byte_row(Metric::l2, row.data(), mean.data(), dimensions, codes.data());
    double squared = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        const double decoded = double{terms.scale} * (codes[d] - 128);
        EXPECT_NEAR(decoded, row[d] - mean[d], 0.51 * terms.scale);
        squared += decoded * decoded;
    }
    EXPECT_NEAR(terms.bias, squared, 1e-5 * squared);
    EXPECT_EQ(encode_byte_row(Metric::cosine, row.data(), mean.data(), dimensions, codes.data()).bias, 0);
}

}  // namespace
}  // namespace pgwarp::test
