// The calibrated recall of a graph against the recall of queries that the build never saw.
#include <gtest/gtest.h>

#include <random>

#include "methods_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::test
{
namespace
{

constexpr std::int64_t full = 0;
constexpr std::int64_t half = 1;
constexpr std::int64_t bits = 2;

// Clusters that lie 40 times as far apart as they are wide, of very different sizes.
std::vector<float> clustered_rows(std::size_t count, std::size_t dimensions, unsigned seed)
{
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> centres(100 * dimensions);
    for (float& value : centres) value = 40 * normal(random);
    random.seed(seed);
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        // Of ever fewer rows, from 2,100 to 42 of 12,000.
        // Drawn in statements of their own: the order of evaluation, and so the rows, do not depend on the compiler.
        const std::size_t drawn = random();
        const std::size_t cluster = std::min<std::size_t>(99, drawn % (random() % 100 + 1));
        for (std::size_t d = 0; d < dimensions; ++d)
            rows[i * dimensions + d] = centres[cluster * dimensions + d] + normal(random);
    }
    return rows;
}

struct Promise {
    bool clustered;
    std::int64_t vectors;
};

class GraphPromises : public testing::TestWithParam<Promise>
{
};

// Also for k between those that are measured: a search keeps no fewer rows than it returns.
TEST_P(GraphPromises, AreKept)
{
    constexpr std::size_t dimensions = 24;
    constexpr std::size_t asked = 400;
    ThreadPool pool(2);
    const std::vector<float> all =
        GetParam().clustered ? clustered_rows(12400, dimensions, 5) : random_rows(12400, dimensions, 9);
    const std::vector<float> queries(all.begin(), all.begin() + asked * dimensions);
    const std::vector<float> rows(all.begin() + asked * dimensions, all.end());
    const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", GetParam().vectors}}), pool);
    const Calibration calibration = index.builder->calibration();
    ASSERT_GT(calibration.count, 3U);
    std::vector<std::vector<RowResult>> nearest(asked);
    for (std::size_t q = 0; q < asked; ++q)
        nearest[q] = brute_force(Metric::l2, queries.data() + q * dimensions, rows, dimensions, 100);
    for (const std::uint32_t k : {1, 10, 11, 16, 20, 50, 100}) {
        for (const double wanted : {0.9, 0.95, 0.99}) {
            const EffortChoice choice = choose_effort(calibration, k, wanted);
            // Estimates may be too coarse to reach the target; then the expected recall is the measured one.
            const double promised = GetParam().vectors == bits ? std::min<double>(wanted, choice.attained) : wanted;
            if (GetParam().vectors != bits) {
                EXPECT_TRUE(choice.reached) << "k " << k << ", " << wanted;
            }
            // Where values are bounds or estimates, the search asks for more candidates.
            const std::uint32_t width = GetParam().vectors == bits   ? std::max(4 * k, 64U)
                                        : GetParam().vectors == half ? k + k / 8 + 3
                                                                     : k;
            const auto found = index.search(queries, width, pool, {}, {}, choice.effort);
            double total = 0;
            for (std::size_t q = 0; q < asked; ++q)
                total += recall(found[q], {nearest[q].begin(), nearest[q].begin() + k});
            EXPECT_GE(total / asked, promised - 0.01) << "k " << k << ", effort " << choice.effort;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Graph, GraphPromises,
                         testing::Values(Promise{false, full}, Promise{false, half}, Promise{true, full},
                                         Promise{true, half}, Promise{false, bits}));

TEST(Graph, TakesTheEffortThatComesNearestWhereNoneSuffices)
{
    Calibration calibration{};
    for (const float recall : {0.5F, 0.8F, 0.8F, 0.8F}) {
        CalibrationPoint& point = calibration.points[calibration.count++];
        point.effort = 8 << calibration.count;
        std::fill(std::begin(point.recall), std::end(point.recall), recall);
    }
    EXPECT_EQ(choose_effort(calibration, 10, 0.7).effort, 32);
    EXPECT_TRUE(choose_effort(calibration, 10, 0.7).reached);
    EXPECT_EQ(choose_effort(calibration, 10, 0.9).effort, 32);
    EXPECT_FALSE(choose_effort(calibration, 10, 0.9).reached);
}

}  // namespace
}  // namespace pgwarp::test
