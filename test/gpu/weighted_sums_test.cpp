// Weighted match counts on the device: the sums in fixed point are those of the CPU, to the bit.
#include "matchcount/weighted_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "device/wait.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;
using pgwarp::matchcount::FixedPointScores;
using pgwarp::matchcount::WeightedItem;
using pgwarp::matchcount::WeightedLists;

struct Case {
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> keywords;
    std::vector<float> weights;
    std::vector<std::vector<WeightedItem>> queries;
};

// Of many sizes and both signs; some are 0.
float random_weight(std::mt19937& random)
{
    if (random() % 20 == 0) return 0;
    const float size = std::ldexp(1 + static_cast<float>(random() % 1000) / 999, static_cast<int>(random() % 12) - 6);
    return random() % 3 == 0 ? -size : size;
}

Case random_case(std::mt19937& random, std::size_t rows, std::size_t count)
{
    Case made;
    const std::uint32_t universe = 1 + random() % (random() % 2 == 0 ? 40 : 5000);
    const std::uint32_t spread = random() % 2 == 0 ? 1 : 700001;
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t left = random() % 12; left > 0; --left) {
            made.keywords.push_back(random() % universe * spread);
            made.weights.push_back(random_weight(random));
        }
        made.offsets.push_back(made.keywords.size());
    }
    made.queries.resize(count);
    for (auto& query : made.queries)
        for (std::size_t left = random() % 50; left > 0; --left)
            query.push_back({static_cast<std::uint32_t>(random() % (universe + 3)) * spread, random_weight(random)});
    return made;
}

void expect_same_sums(const Case& made)
{
    Context& context = shared_context();
    const Context::Lease stream = context.lease(Priority::search);
    ThreadPool pool(0);
    const WeightedLists lists({{made.offsets, made.keywords}, made.weights}, pool);
    const cuda::matchcount::DeviceWeightedLists on_device(lists, context.pool(), stream);
    std::vector<std::uint32_t> offsets{0};
    std::vector<cuda::matchcount::ScaledItem> items;
    std::vector<FixedPointScores> wanted;
    for (const auto& query : made.queries) {
        wanted.push_back(fixed_point_scores(lists, query));
        const auto scaled = cuda::matchcount::scaled_items(lists, query, wanted.back().exponent);
        items.insert(items.end(), scaled.begin(), scaled.end());
        offsets.push_back(static_cast<std::uint32_t>(items.size()));
    }
    const std::size_t rows = made.offsets.size() - 1;
    DeviceArray<std::uint32_t> device_offsets(context.pool(), offsets.size(), "test", stream);
    DeviceArray<cuda::matchcount::ScaledItem> device_items(context.pool(), items.size(), "test", stream);
    DeviceArray<std::int32_t> sums(context.pool(), rows * made.queries.size(), "test", stream);
    send(device_offsets.data(), offsets.data(), device_offsets.bytes(), stream, "test");
    send(device_items.data(), items.data(), device_items.bytes(), stream, "test");
    fixed_point_sums(on_device.view(),
                     {static_cast<std::uint32_t>(made.queries.size()), device_offsets.data(), device_items.data()},
                     sums.data(), context, stream);
    std::vector<std::int32_t> found(sums.size());
    read_back(found.data(), sums.data(), sums.bytes(), stream, "test");
    for (std::size_t q = 0; q < made.queries.size(); ++q)
        for (std::size_t row = 0; row < rows; ++row)
            ASSERT_EQ(found[q * rows + row], wanted[q].sums[row]) << "query " << q << ", row " << row;
}

TEST(WeightedSums, RandomCasesEqualTheCpus)
{
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE(round);
        const std::size_t rows = round % 6 == 0 ? random() % 3 : random() % 3000;
        ASSERT_NO_FATAL_FAILURE(expect_same_sums(random_case(random, rows, 1 + random() % 40)));
    }
}

// The smallest and largest weights, and queries of 10,000 items.
TEST(WeightedSums, ExtremeWeightsEqualTheCpus)
{
    std::mt19937 random(5);
    Case made;
    constexpr float weights[] = {1e-45F, -1e-45F, 3e38F, -3e38F, 1, -1e-20F, 0};
    for (std::size_t row = 0; row < 5000; ++row) {
        for (std::uint32_t left = random() % 9; left > 0; --left) {
            made.keywords.push_back(random() % 12000);
            made.weights.push_back(weights[random() % std::size(weights)]);
        }
        made.offsets.push_back(made.keywords.size());
    }
    made.queries.resize(6);
    for (std::size_t i = 1; i < made.queries.size(); ++i)
        for (std::uint32_t item = 0; item < 10000; ++item)
            made.queries[i].push_back({static_cast<std::uint32_t>(random() % 12000),
                                       i < 4 ? weights[random() % std::size(weights)] : random_weight(random)});
    ASSERT_NO_FATAL_FAILURE(expect_same_sums(made));
}

TEST(WeightedSums, ManyRowsEqualTheCpus)
{
    std::mt19937 random(4);
    ASSERT_NO_FATAL_FAILURE(expect_same_sums(random_case(random, 150077, 20)));
    ASSERT_NO_FATAL_FAILURE(expect_same_sums(random_case(random, 70000, 1)));
}

}  // namespace
}  // namespace pgwarp::test
