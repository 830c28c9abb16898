// ivfadc on the device against the CPU's on the same arrays, and against brute force in float64.
#include <gtest/gtest.h>

#include "ivfadc_fixture.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
    std::size_t dimensions;
    std::int64_t subquantizers;
    std::int64_t opq;
    bool only_codes() const { return codes == 0 && refine == 0; }
};

class DeviceIvfadc : public testing::TestWithParam<Case>
{
protected:
    void make(std::size_t count, std::size_t asked)
    {
        const Case given = GetParam();
        rows = random_rows(count, given.dimensions, 1);
        queries = random_rows(asked, given.dimensions, 1);
        // Queries near rows, but equal to none.
        for (std::size_t i = 0; i < queries.size(); ++i) queries[i] = queries[i] * 0.98F + 0.01F;
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
    }
    ParameterList options(std::int64_t lists) const
    {
        const Case given = GetParam();
        return make_list({{"codes", given.codes},
                          {"refine", given.refine},
                          {"lists", lists},
                          {"subquantizers", given.subquantizers},
                          {"opq", given.opq}});
    }
    double tolerance() const { return GetParam().only_codes() ? 2e-4 : 0; }
    ThreadPool pool{0};
    std::vector<float> rows;
    std::vector<float> queries;
};

// Small and large batches, few and all probes, small and large k: every way of a search.
TEST_P(DeviceIvfadc, AgreesWithTheCpu)
{
    make(12000, 600);
    const Both index(GetParam().metric, GetParam().dimensions, rows, options(60), pool);
    EXPECT_EQ(index.device->result_kind(), index.searcher->result_kind());
    for (const std::size_t batch : {1, 17, 600}) {
        const std::vector<float> some(queries.begin(),
                                      queries.begin() + static_cast<std::ptrdiff_t>(batch * GetParam().dimensions));
        for (const std::int64_t probes : {5, 20, 60}) {
            for (const std::uint32_t k : {1U, 10U, 100U}) {
                const auto expected = index.ask(*index.searcher, some, k, probes, pool);
                const auto found = index.ask(*index.device, some, k, probes, pool);
                const Agreement agreement = compare(expected, found, tolerance());
                const std::string what =
                    "batch " + std::to_string(batch) + " probes " + std::to_string(probes) + " k " + std::to_string(k);
                for (const auto& result : found) ASSERT_EQ(result.size(), k) << what;
                EXPECT_TRUE(agreement.ordered) << what;
                EXPECT_EQ(agreement.unequal, 0U) << what;
                // Small batches have few rows, so one row more or less is no error. Codes of one dimension have many
                // ties.
                const bool ties = GetParam().only_codes() && GetParam().dimensions == 1;
                if (batch * k >= 1000 && !ties) {
                    EXPECT_GE(agreement.share, 0.995) << what;
                }
            }
        }
    }
}

// Small batches in turn, which share workspaces, with other queries, dead rows and sizes.
TEST_P(DeviceIvfadc, RepeatsSmallBatches)
{
    make(12000, 200);
    const Both index(GetParam().metric, GetParam().dimensions, rows, options(40), pool);
    std::vector<std::uint64_t> dead((12000 + 63) / 64, 0x0f00000000003333ULL);
    const std::size_t dimensions = GetParam().dimensions;
    const bool ties = GetParam().only_codes() && dimensions == 1;
    std::size_t next = 0;
    for (int round = 0; round < 4; ++round) {
        for (const std::size_t batch : {1, 2, 16, 20, 64}) {
            for (const bool with_dead : {false, true}) {
                next = (next + 7) % (200 - batch);
                const auto begin = queries.begin() + static_cast<std::ptrdiff_t>(next * dimensions);
                const std::vector<float> some(begin, begin + static_cast<std::ptrdiff_t>(batch * dimensions));
                const RowBitmap bits = with_dead ? RowBitmap(dead) : RowBitmap();
                const auto expected = index.ask(*index.searcher, some, 10, 24, pool, bits);
                const auto found = index.ask(*index.device, some, 10, 24, pool, bits);
                const Agreement agreement = compare(expected, found, tolerance());
                EXPECT_TRUE(agreement.ordered) << batch;
                EXPECT_EQ(agreement.unequal, 0U) << batch;
                if (batch >= 16 && !ties) {
                    EXPECT_GE(agreement.share, 0.99) << batch;
                }
                for (const auto& result : found) ASSERT_EQ(result.size(), 10U) << batch;
            }
        }
        dead[round] = ~std::uint64_t{0};
    }
}

// The shared memory of other devices: 64 KB on sm_75, 99 KB on sm_86.
TEST_P(DeviceIvfadc, FitsSmallerDevices)
{
    make(12000, 600);
    for (const std::size_t kilobytes : {64, 99}) {
        shared_context().limit_shared_bytes(kilobytes << 10);
        const Both index(GetParam().metric, GetParam().dimensions, rows, options(60), pool);
        for (const std::size_t batch : {1, 40, 600}) {
            const std::vector<float> some(queries.begin(),
                                          queries.begin() + static_cast<std::ptrdiff_t>(batch * GetParam().dimensions));
            const auto expected = index.ask(*index.searcher, some, 10, 30, pool);
            const auto found = index.ask(*index.device, some, 10, 30, pool);
            const Agreement agreement = compare(expected, found, tolerance());
            EXPECT_TRUE(agreement.ordered) << batch;
            EXPECT_EQ(agreement.unequal, 0U) << batch;
            const bool ties = GetParam().only_codes() && GetParam().dimensions == 1;
            if (batch >= 40 && !ties) {
                EXPECT_GE(agreement.share, 0.99) << batch;
            }
        }
        shared_context().limit_shared_bytes(SIZE_MAX);
    }
}

TEST_P(DeviceIvfadc, LeavesDeadRowsOut)
{
    make(6000, 300);
    const Both index(GetParam().metric, GetParam().dimensions, rows, options(40), pool, 1001);
    std::vector<std::uint64_t> dead((6000 + 63) / 64, 0x5555aaaa0f0f3333ULL);
    for (const std::size_t batch : {3, 300}) {
        const std::vector<float> some(queries.begin(),
                                      queries.begin() + static_cast<std::ptrdiff_t>(batch * GetParam().dimensions));
        const auto expected = index.ask(*index.searcher, some, 10, 40, pool, dead);
        const auto found = index.ask(*index.device, some, 10, 40, pool, dead);
        for (const auto& result : found) {
            ASSERT_EQ(result.size(), 10U);
            for (const RowResult& one : result) ASSERT_FALSE(bit_is_set(dead, one.row));
        }
        EXPECT_GE(compare(expected, found, tolerance()).share, 0.99);
    }
    // Three rows are alive: all of them are found for any number of probes.
    std::fill(dead.begin(), dead.end(), ~std::uint64_t{0});
    for (const std::size_t row : {5, 700, 5999}) dead[row / 64] &= ~(std::uint64_t{1} << (row % 64));
    const std::vector<float> one(queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(GetParam().dimensions));
    EXPECT_EQ(index.ask(*index.device, one, 10, 1, pool, dead)[0].size(), 3U);
}

TEST_P(DeviceIvfadc, AnswersManyNeighbours)
{
    make(9000, 5);
    const Both index(GetParam().metric, GetParam().dimensions, rows, options(30), pool);
    for (const std::uint32_t k : {700U, 2000U, 9000U, 65536U}) {
        const auto expected = index.ask(*index.searcher, queries, k, 30, pool);
        const auto found = index.ask(*index.device, queries, k, 30, pool);
        const Agreement agreement = compare(expected, found, tolerance());
        ASSERT_EQ(found[0].size(), std::min<std::size_t>(k, 9000));
        EXPECT_TRUE(agreement.ordered);
        EXPECT_EQ(agreement.unequal, 0U);
        EXPECT_GE(agreement.share, 0.995);
    }
}

TEST_P(DeviceIvfadc, ContinuesAfterACursor)
{
    make(3000, 1);
    const Both index(GetParam().metric, GetParam().dimensions, rows, options(20), pool);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = 1;
    batch.k = 50;
    double distance = -HUGE_VAL;
    std::uint32_t row = 0;
    std::vector<std::uint64_t> dead((3000 + 63) / 64, 0x00f0000000000101ULL);
    for (int page = 0; page < 5; ++page) {
        std::vector<RowResult> expected;
        std::vector<RowResult> found;
        // The fourth page is more than the device sorts.
        batch.k = page == 3 ? 2500 : 50;
        batch.dead = page > 1 ? RowBitmap(dead) : RowBitmap();
        index.searcher->search_exact(batch, distance, row, expected, pool);
        index.device->search_exact(batch, distance, row, found, pool);
        // Values of codes may differ in their last digits, so a row may be on either side of the cursor.
        if (tolerance() == 0) {
            ASSERT_EQ(found.size(), expected.size());
        }
        ASSERT_TRUE(page == 4 || !found.empty());
        if (found.empty()) break;
        if (tolerance() == 0) {
            for (std::size_t i = 0; i < found.size(); ++i) {
                ASSERT_EQ(found[i].row, expected[i].row);
                ASSERT_EQ(found[i].distance, expected[i].distance);
            }
        }
        distance = found.back().distance;
        row = found.back().row;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DeviceIvfadc,
    testing::Values(Case{Metric::l2, 1, 1, 128, 0, 0}, Case{Metric::l2, 1, 1, 3, 0, 0},
                    Case{Metric::l2, 1, 1, 127, 0, 0}, Case{Metric::l2, 0, 2, 64, 0, 0},
                    Case{Metric::inner_product, 1, 1, 40, 0, 0}, Case{Metric::cosine, 1, 1, 100, 0, 0},
                    Case{Metric::cosine, 0, 2, 33, 0, 0}, Case{Metric::inner_product, 0, 2, 24, 0, 0},
                    Case{Metric::l2, 0, 0, 32, 16, 0}, Case{Metric::l2, 0, 0, 32, 8, 1},
                    Case{Metric::l2, 0, 0, 48, 6, 0}, Case{Metric::l2, 0, 0, 35, 10, 0},
                    Case{Metric::l2, 0, 0, 1, 1, 0}, Case{Metric::cosine, 0, 0, 24, 12, 0},
                    Case{Metric::inner_product, 0, 0, 16, 16, 0}, Case{Metric::l2, 1, 1, 1, 0, 0},
                    Case{Metric::l2, 2, 0, 128, 0, 0}, Case{Metric::l2, 2, 1, 127, 0, 0},
                    Case{Metric::l2, 2, 2, 64, 0, 0}, Case{Metric::l2, 2, 0, 3, 0, 0}, Case{Metric::l2, 2, 2, 1, 0, 0},
                    Case{Metric::cosine, 2, 0, 100, 0, 0}, Case{Metric::cosine, 2, 2, 33, 0, 0},
                    Case{Metric::inner_product, 2, 1, 40, 0, 0}, Case{Metric::inner_product, 2, 0, 24, 0, 0}));

}  // namespace
}  // namespace pgwarp::test
