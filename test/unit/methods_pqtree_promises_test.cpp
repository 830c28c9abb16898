// The calibrated recall of a pqtree index against the recall of queries that the build never saw.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "methods_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::test
{
namespace
{

// Clusters of ever fewer rows, `apart` times as far apart as they are wide, ever narrower along the dimensions.
std::vector<float> clustered_rows(std::size_t count, std::size_t dimensions, float apart, unsigned seed)
{
    std::mt19937 random(seed);
    constexpr std::size_t clusters = 60;
    std::normal_distribution<float> normal;
    std::vector<float> centres(clusters * dimensions);
    for (float& value : centres) value = apart * normal(random);
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        // Drawn in statements of their own: the order of evaluation, and so the rows, do not depend on the compiler.
        const std::size_t drawn = random();
        const std::size_t cluster = drawn % (random() % clusters + 1);
        for (std::size_t d = 0; d < dimensions; ++d)
            rows[i * dimensions + d] =
                (centres[cluster * dimensions + d] + normal(random)) / (1 + static_cast<float>(d) / 6);
    }
    return rows;
}

struct Promise {
    Metric metric;
    float apart;  // 0: few clusters that touch
    std::int64_t refine;
};

class PqtreePromises : public testing::TestWithParam<Promise>
{
};

// Queries that the builds never saw reach the target recall less 0.01 and one standard error of their own.
TEST_P(PqtreePromises, AreKept)
{
    constexpr std::size_t dimensions = 48;
    constexpr std::size_t asked = 800;
    constexpr std::size_t count = 12000;
    const auto [metric, apart, refine] = GetParam();
    ThreadPool pool(2);
    for (unsigned seed = 1; seed <= 3; ++seed) {
        std::vector<float> all = apart > 0 ? clustered_rows(count + asked, dimensions, apart, seed)
                                           : random_rows(count + asked, dimensions, seed);
        if (metric == Metric::cosine) normalise_rows(all, dimensions);
        const std::vector<float> queries(all.begin(), all.begin() + asked * dimensions);
        const std::vector<float> rows(all.begin() + asked * dimensions, all.end());
        const Index exact(Method::exact, metric, dimensions, rows, {}, pool);
        const Index index(Method::pqtree, metric, dimensions, rows, make_list({{"refine", refine}}), pool);
        const auto nearest = exact.search(queries, 100, pool);
        // Some of the candidates suffice, also where line codes do not order the rows of a cluster.
        EXPECT_LT(choose_effort(index.builder->calibration(), 10, 0.95).effort, static_cast<std::int64_t>(count));
        for (const std::uint32_t k : {1, 10, 11, 50, 100}) {
            for (const double wanted : {0.9, 0.95, 0.99}) {
                const EffortChoice choice = choose_effort(index.builder->calibration(), k, wanted);
                EXPECT_TRUE(choice.reached) << "k " << k << ", " << wanted;
                const std::uint32_t width = search_width({index.searcher->result_kind()}, k);
                const auto found = index.search(queries, width, pool, {}, {}, choice.effort);
                double total = 0;
                double squares = 0;
                for (std::size_t q = 0; q < asked; ++q) {
                    const double share = recall(found[q], {nearest[q].begin(), nearest[q].begin() + k});
                    total += share / asked;
                    squares += share * share / asked;
                }
                const double error = std::sqrt(std::max(0.0, squares - total * total) / asked);
                EXPECT_GE(total, wanted - 0.01 - error)
                    << "seed " << seed << ", k " << k << ", effort " << choice.effort;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Pqtree, PqtreePromises,
                         testing::Values(Promise{Metric::l2, 40, 1}, Promise{Metric::l2, 400, 2},
                                         Promise{Metric::l2, 0, 1}, Promise{Metric::cosine, 0, 1},
                                         Promise{Metric::cosine, 40, 2}, Promise{Metric::inner_product, 0, 2}));

}  // namespace
}  // namespace pgwarp::test
