// Match counts by the dense form on the device, a value of each function for each row, against those of the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cluster_fixture.h"
#include "dead_rows.h"
#include "matchcount/dense_count.h"
#include "methods/matchcount/match_count.h"

namespace pgwarp::cuda::matchcount
{
namespace
{

using HostLists = pgwarp::matchcount::KeywordLists;
using pgwarp::matchcount::Item;

class DenseCountTest : public testing::Test
{
protected:
    std::mt19937 random_{29};
};

// Values of functions, and the same as keywords: function * universe + value.
struct DenseCase {
    DenseRows rows;
    std::vector<std::uint8_t> signatures;  // [rows][functions]
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> keywords;
};

enum class Values { normal, uniform, equal, ascending };

DenseCase dense_case(std::mt19937& random, std::uint32_t rows, std::uint32_t functions, std::uint32_t universe,
                     Values kind)
{
    DenseCase made;
    made.rows = {rows, functions, universe, dense_stride(rows), nullptr};
    std::normal_distribution<double> normal(universe / 2.0, universe / 9.0);
    for (std::uint32_t row = 0; row < rows; ++row) {
        for (std::uint32_t f = 0; f < functions; ++f) {
            std::uint32_t value = kind == Values::normal
                                      ? static_cast<std::uint32_t>(std::clamp(normal(random), 0.0, 255.0))
                                  : kind == Values::uniform ? random() % 256
                                                            : 1 % universe;
            // Later rows have more in common with the queries, whose values are 0.
            if (kind == Values::ascending) value = f < std::uint64_t{row} * functions / rows ? 0 : 1 % universe;
            made.signatures.push_back(static_cast<std::uint8_t>(value));
            if (made.signatures.back() < universe) made.keywords.push_back(f * universe + made.signatures.back());
        }
        made.offsets.push_back(made.keywords.size());
    }
    return made;
}

void expect_dense(DenseCase& made, std::mt19937& random, std::uint32_t count, std::uint32_t k, unsigned dead_one_of)
{
    DenseRows& rows = made.rows;
    const Context::Lease stream = context().lease(Priority::build);
    const auto signatures = to_device(made.signatures, stream);
    DeviceArray<std::uint8_t> values(context().pool(), rows.functions * rows.stride + 1, "test", stream);
    check(cudaMemsetAsync(values.data(), 0, values.bytes(), stream), "clearing");
    const std::uint32_t half = rows.rows / 2;
    transpose_signatures(signatures.data(), half, rows.functions, values.data(), rows.stride, 0, stream);
    transpose_signatures(signatures.data() + std::size_t{half} * rows.functions, rows.rows - half, rows.functions,
                         values.data(), rows.stride, half, stream);
    rows.values = values.data();
    std::vector<std::uint8_t> asked;
    for (std::uint32_t query = 0; query < count; ++query)
        for (std::uint32_t f = 0; f < rows.functions; ++f) {
            const std::size_t row = random() % std::max(1U, rows.rows);
            const bool from_row = rows.rows > 0 && query % 2 == 0;
            asked.push_back(from_row ? made.signatures[query % rows.rows * rows.functions + f]
                                     : static_cast<std::uint8_t>(query % 3 == 0 ? 0 : row % 256));
        }
    const std::vector<std::uint64_t> dead =
        dead_one_of > 0 ? random_dead(random, rows.rows, dead_one_of) : std::vector<std::uint64_t>();
    const auto device_asked = to_device(asked, stream);
    const auto device_dead = to_device(dead, stream);
    auto out_rows = to_device(std::vector<std::uint32_t>(std::size_t{count} * k), stream);
    auto out_counts = to_device(std::vector<std::uint32_t>(std::size_t{count} * k), stream);
    auto out_found = to_device(std::vector<std::uint32_t>(count), stream);
    DeviceArray<std::byte> workspace(context().pool(), top_dense_counts_workspace_bytes(rows, count, k, context()),
                                     "test", stream);
    check(cudaMemsetAsync(workspace.data(), 0xa5, workspace.bytes(), stream), "poison");
    top_dense_counts(rows, {count, device_asked.data(), reinterpret_cast<const std::uint32_t*>(device_dead.data())}, k,
                     {out_rows.data(), out_counts.data(), out_found.data()}, workspace.data(), context(), stream);
    const auto found_rows = to_host(out_rows, stream);
    const auto found_counts = to_host(out_counts, stream);
    const auto found = to_host(out_found, stream);
    const HostLists host({made.offsets, made.keywords}, caller_alone());
    pgwarp::matchcount::CountWorkspace host_workspace;
    for (std::uint32_t query = 0; query<count; query += count> 100 ? 37 : 1) {
        std::vector<Item> items;
        for (std::uint32_t f = 0; f < rows.functions; ++f) {
            const std::uint8_t value = asked[std::size_t{query} * rows.functions + f];
            if (value < rows.universe) items.push_back({f * rows.universe + value, f * rows.universe + value});
        }
        const auto expected = search_counts(host, items, k, dead, host_workspace).rows;
        ASSERT_EQ(found[query], expected.size()) << "query " << query;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_EQ(found_counts[std::size_t{query} * k + i], expected[i].count)
                << "query " << query << " place " << i;
            ASSERT_EQ(found_rows[std::size_t{query} * k + i], expected[i].row) << "query " << query << " place " << i;
        }
    }
}

TEST_F(DenseCountTest, SmallCases)
{
    for (int round = 0; round < 120; ++round) {
        const std::uint32_t universe = round % 4 == 0 ? 256 : 1 + random_() % 100;
        const std::uint32_t functions = 1 + random_() % (round % 10 == 0 ? 1024 : 40);
        const auto kind = static_cast<Values>(round % 4);
        DenseCase made = dense_case(random_, random_() % 1500, functions, universe, kind);
        ASSERT_NO_FATAL_FAILURE(expect_dense(made, random_, 1 + random_() % (round % 2 == 0 ? 130 : 10),
                                             1 + random_() % 40, round % 3 == 0 ? 3 : 0))
            << round << ": " << made.rows.rows << " rows, " << functions << " functions, " << universe << " values";
    }
}

// Samples of the rows give thresholds. Rows of ascending counts, of which more pass than there are places, and equal
// rows are counted again.
TEST_F(DenseCountTest, LargeCases)
{
    for (const std::size_t shared : {SIZE_MAX, std::size_t{65536}}) {
        context().limit_shared_bytes(shared);
        for (const Values kind : {Values::normal, Values::equal, Values::ascending, Values::uniform}) {
            DenseCase made = dense_case(random_, 100000 + 77, 23, 67, kind);
            ASSERT_NO_FATAL_FAILURE(expect_dense(made, random_, 90, 100, 0)) << static_cast<int>(kind);
            ASSERT_NO_FATAL_FAILURE(expect_dense(made, random_, 3, 1000, 5)) << static_cast<int>(kind);
        }
        DenseCase made = dense_case(random_, 40000, 300, 256, Values::normal);
        ASSERT_NO_FATAL_FAILURE(expect_dense(made, random_, 1500, 10, 4));
    }
    context().limit_shared_bytes(SIZE_MAX);
}

}  // namespace
}  // namespace pgwarp::cuda::matchcount
