// The proof of exact searches on a device: no possible score of a row is below lowest_score() of the row's value. And
// the bound is tight: few rows outside an answer pass it, the worst pairs nearly reach it, and it fails without any of
// its parts.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "score_model.h"

namespace pgwarp::test::score_bound_test
{
namespace
{

using cuda::ScoreKind;

struct Work {
    const char* name;
    Metric metric;
    ScoreKind kind;
};

const Work half_l2{"half_l2", Metric::l2, ScoreKind::half_l2};
const Work half_product{"half_product", Metric::inner_product, ScoreKind::half_dot};
const Work half_cosine{"half_cosine", Metric::cosine, ScoreKind::half_dot};
const Work float_l2{"float_l2", Metric::l2, ScoreKind::float_l2};
const Work float_product{"float_product", Metric::inner_product, ScoreKind::float_dot};
const Work float_cosine{"float_cosine", Metric::cosine, ScoreKind::float_dot};
const Work float_l1{"float_l1", Metric::l1, ScoreKind::float_l1};

using Random = std::mt19937;

void normalise(Vector& vector)
{
    const double norm = norm_of(vector);
    for (float& element : vector) element = static_cast<float>(element / norm);
}

std::vector<Vector> vectors(std::size_t count, std::size_t dimensions, const std::function<float()>& element)
{
    std::vector<Vector> made(count, Vector(dimensions));
    for (Vector& vector : made) std::generate(vector.begin(), vector.end(), element);
    return made;
}

// Elements that stress one part of the bound or the other.
struct Hard {
    const char* name;
    std::function<float(Random&)> element;
};

float gauss(Random& random)
{
    return std::normal_distribution<float>()(random);
}

const std::vector<Hard>& hard_elements()
{
    static const std::vector<Hard> all = {
        {"gaussian", gauss},
        {"large", [](Random& random) { return 1e15F * gauss(random); }},
        {"tiny", [](Random& random) { return 1e-15F * gauss(random); }},
        {"denormal", [](Random& random) { return 1e-40F * gauss(random); }},
        {"of all sizes",
         [](Random& random) { return std::ldexp(gauss(random), static_cast<int>(random() % 60) - 30); }},
        {"far from zero", [](Random& random) { return 1000 + 0.01F * gauss(random); }},
        {"cancelling", [](Random& random) { return (random() % 2 == 0 ? 1000.0F : -1000.0F) + gauss(random); }},
        {"halfway between halves",
         [](Random& random) { return (random() % 2 == 0 ? 1 : -1) * (1 + (2 * (random() % 512) + 1) * 0x1p-11F); }},
        {"few and large", [](Random& random) { return random() % 16 == 0 ? 100 * gauss(random) : 0; }},
        {"whole numbers", [](Random& random) { return static_cast<float>(random() % 256); }},
    };
    return all;
}

// Rows, and queries among them and beside them.
void expect_bounded(const Work& work, std::vector<Vector> rows, std::vector<Vector> queries, const std::string& what)
{
    if (work.metric == Metric::cosine) {
        for (Vector& row : rows) normalise(row);
        for (Vector& query : queries) normalise(query);
    }
    const ScoreModel model(work.metric, work.kind, std::move(rows));
    std::size_t broken = 0;
    for (const Vector& given : queries) {
        const ScoreModel::Query query = model.prepare(given);
        if (!query.usable) continue;
        for (std::size_t row = 0; row < model.rows.size(); ++row) {
            const double value = model.value(query, row);
            // The row is in an answer whose last value is no smaller.
            for (const double last : {value, value + std::fabs(value) / 8}) {
                const double lowest = lowest_score(model.bounds, query.bound, last);
                for (const double score : model.scores(query, row)) broken += score < lowest ? 1 : 0;
            }
        }
    }
    EXPECT_EQ(broken, 0U) << what;
}

class ScoreBound : public testing::TestWithParam<Work>
{
};

TEST_P(ScoreBound, HoldsForHardRows)
{
    Random random(11);
    for (const std::size_t dimensions : {1, 3, 64, 130, 1000}) {
        for (const Hard& hard : hard_elements()) {
            const auto element = [&] { return hard.element(random); };
            const std::vector<Vector> rows = vectors(24, dimensions, element);
            std::vector<Vector> queries = vectors(6, dimensions, element);
            queries.push_back(rows[0]);
            queries.push_back(rows[1]);
            for (float& place : queries.back()) place = std::nextafter(place, 1e30F);
            queries.push_back(rows[2]);
            for (float& place : queries.back()) place = -place;
            expect_bounded(GetParam(), rows, queries, std::string(hard.name) + " x " + std::to_string(dimensions));
        }
    }
}

TEST_P(ScoreBound, HoldsForQueriesOfOtherSizes)
{
    Random random(12);
    const auto element = [&] { return gauss(random); };
    const std::vector<Vector> rows = vectors(40, 96, element);
    for (const float size : {1e-20F, 1e-6F, 1e-3F, 1e3F, 1e6F}) {
        std::vector<Vector> queries = vectors(8, 96, element);
        for (Vector& query : queries)
            for (float& place : query) place *= size;
        expect_bounded(GetParam(), rows, queries, "queries of size " + std::to_string(size));
    }
}

TEST_P(ScoreBound, HoldsForRowsThatAreAlike)
{
    Random random(13);
    const Vector centre = vectors(1, 200, [&] { return gauss(random); })[0];
    for (const float apart : {0.0F, 1e-7F, 1e-4F, 1e-2F}) {
        std::vector<Vector> rows(30, centre);
        for (Vector& row : rows)
            for (float& place : row) place += apart * gauss(random);
        expect_bounded(GetParam(), rows, {rows.begin(), rows.begin() + 8}, "apart " + std::to_string(apart));
    }
}

// A filter by the bound of the tenth value keeps hardly more than ten of random rows.
TEST_P(ScoreBound, LetsFewRowsThrough)
{
    Random random(14);
    std::vector<Vector> rows = vectors(2000, 128, [&] { return gauss(random); });
    std::vector<Vector> queries = vectors(10, 128, [&] { return gauss(random); });
    if (GetParam().metric == Metric::cosine) {
        for (Vector& row : rows) normalise(row);
        for (Vector& query : queries) normalise(query);
    }
    const ScoreModel model(GetParam().metric, GetParam().kind, std::move(rows));
    for (const Vector& given : queries) {
        const ScoreModel::Query query = model.prepare(given);
        std::vector<double> values;
        for (std::size_t row = 0; row < model.rows.size(); ++row) values.push_back(model.value(query, row));
        std::vector<double> sorted = values;
        std::nth_element(sorted.begin(), sorted.begin() + 9, sorted.end());
        const double lowest = lowest_score(model.bounds, query.bound, sorted[9]);
        std::size_t kept = 0;
        for (std::size_t row = 0; row < model.rows.size(); ++row) kept += model.scores(query, row)[0] >= lowest ? 1 : 0;
        EXPECT_GE(kept, 10U);
        EXPECT_LE(kept, 20U);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScoreBound,
                         testing::Values(half_l2, half_product, half_cosine, float_l2, float_product, float_cosine,
                                         float_l1),
                         [](const auto& info) { return std::string(info.param.name); });

// Sums of products that all lose bits in one direction.
TEST(SummationError, HoldsAndIsNotFarOff)
{
    for (const std::uint32_t terms : {64U, 128U, 768U, 1536U}) {
        Random random(terms);
        double largest = 0;
        for (int round = 0; round < 20; ++round) {
            Vector products(terms);
            for (float& product : products) product = 1 + static_cast<float>(random() % 0x800000) * 0x1p-23F;
            double exact = 0;
            for (const float product : products) exact += product;
            for (const float sum : {sum_forward(products), sum_backward(products), sum_in_pairs(products),
                                    sum_cut_off(products), sum_cut_each(products)}) {
                const double error = std::fabs(sum - exact) / exact;
                EXPECT_LE(error, cuda::summation_error(terms));
                largest = std::max(largest, error);
            }
        }
        EXPECT_GT(largest, cuda::summation_error(terms) / 10);
    }
}

// A query and a row that halves move as far apart as rounding can, each element by half a unit and all in one
// direction. Both lie halfway between two halves; a row on the other side keeps the mean at zero.
struct WorstPair {
    explicit WorstPair(std::size_t dimensions) : query(dimensions, 1 + 3 * 0x1p-11F), rows(2, query)
    {
        for (float& place : rows[0]) place = -place;
    }
    Vector query;
    std::vector<Vector> rows;
};

// The largest error of a score as a share of the bound's margin. ideal: the score without halves and rounding.
double share_of_bound(const ScoreModel& model, const ScoreModel::Query& query, std::size_t row, double ideal)
{
    const double lowest = lowest_score(model.bounds, query.bound, model.value(query, row));
    const std::vector<double> scores = model.scores(query, row);
    return (ideal - *std::min_element(scores.begin(), scores.end())) / (ideal - lowest);
}

TEST(ScoreBoundOfWorstPairs, IsNearlyReached)
{
    const WorstPair pair(64);
    const ScoreModel l2(Metric::l2, ScoreKind::half_l2, pair.rows);
    const ScoreModel::Query near = l2.prepare(pair.query);
    const double square = near.bound.norm * near.bound.norm;
    const double distance = l2.value(near, 0) * l2.bounds.scale;
    EXPECT_GT(share_of_bound(l2, near, 0, (square - distance * distance) / 2), 0.8);
    EXPECT_LE(share_of_bound(l2, near, 0, (square - distance * distance) / 2), 1.0);

    const ScoreModel product(Metric::inner_product, ScoreKind::half_dot, pair.rows);
    const ScoreModel::Query far = product.prepare(pair.query);
    EXPECT_GT(share_of_bound(product, far, 0, -product.value(far, 0) * product.bounds.scale), 0.8);
    EXPECT_LE(share_of_bound(product, far, 0, -product.value(far, 0) * product.bounds.scale), 1.0);
}

// Whether the worst pair is within the bound after `change` has removed a part of the bound.
bool holds_without(Metric metric, ScoreKind kind,
                   const std::function<void(cuda::RowBounds&, cuda::QueryBound&)>& change)
{
    const WorstPair pair(64);
    const ScoreModel model(metric, kind, pair.rows);
    const ScoreModel::Query query = model.prepare(pair.query);
    cuda::RowBounds rows = model.bounds;
    cuda::QueryBound bound = query.bound;
    change(rows, bound);
    const double lowest = lowest_score(rows, bound, model.value(query, 0));
    const std::vector<double> scores = model.scores(query, 0);
    return *std::min_element(scores.begin(), scores.end()) >= lowest;
}

TEST(ScoreBoundOfWorstPairs, NeedsEachOfItsParts)
{
    for (const auto& [metric, kind] :
         {std::pair{Metric::l2, ScoreKind::half_l2}, std::pair{Metric::inner_product, ScoreKind::half_dot}}) {
        EXPECT_TRUE(holds_without(metric, kind, [](cuda::RowBounds&, cuda::QueryBound&) {}));
        EXPECT_FALSE(holds_without(metric, kind, [](cuda::RowBounds& rows, cuda::QueryBound&) { rows.residual = 0; }));
        EXPECT_FALSE(
            holds_without(metric, kind, [](cuda::RowBounds&, cuda::QueryBound& query) { query.residual = 0; }));
        EXPECT_FALSE(holds_without(metric, kind, [](cuda::RowBounds& rows, cuda::QueryBound&) { rows.summation = 0; }));
    }
}

}  // namespace
}  // namespace pgwarp::test::score_bound_test
