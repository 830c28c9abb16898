// Recall of searches with predicates, for every share of rows that pass, where these lie anywhere, near the query or
// far from it: what is asked of a calibrated index holds.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "filtered_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::filtered_recall_test
{
namespace
{

using namespace test;

constexpr std::size_t dimensions = 16;
constexpr std::size_t clusters = 1000;
constexpr std::size_t rows = 100 * clusters;
constexpr std::size_t asked = 100;  // queries
constexpr std::uint32_t k = 10;

// Clusters that touch their neighbours, and rows and queries of them.
struct Clustered {
    std::vector<float> centres;
    std::vector<float> all;              // rows, then queries
    std::vector<std::uint64_t> cluster;  // of each

    Clustered() : centres(clusters * dimensions), all((rows + asked) * dimensions)
    {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        for (float& value : centres) value = 2 * normal(random);
        for (std::size_t i = 0; i < rows + asked; ++i) {
            const std::size_t drawn = random() % clusters;
            cluster.push_back(drawn);
            for (std::size_t d = 0; d < dimensions; ++d)
                all[i * dimensions + d] = centres[drawn * dimensions + d] + normal(random);
        }
    }
    const float* query(std::size_t q) const { return all.data() + (rows + q) * dimensions; }
};

const Clustered& data()
{
    static const Clustered made;
    return made;
}

enum class Where { anywhere, near, far };

// Some thousandths of the rows pass: by a number that has nothing to do with the vector, or by their clusters, the
// nearest of the query or the farthest.
Predicate predicate_of(std::size_t q, std::uint64_t thousandths, Where where)
{
    if (where == Where::anywhere) return Predicate().where(0, q, q + thousandths - 1);
    std::vector<std::pair<double, std::uint64_t>> order;
    for (std::size_t i = 0; i < clusters; ++i) {
        const double distance =
            canonical_distance(Metric::l2, data().query(q), data().centres.data() + i * dimensions, dimensions);
        order.emplace_back(where == Where::near ? distance : -distance, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint64_t> chosen;
    for (std::size_t i = 0; i < thousandths; ++i) chosen.push_back(order[i].second);
    std::sort(chosen.begin(), chosen.end());
    Ranges ranges;
    for (const std::uint64_t code : chosen) {
        if (!ranges.empty() && ranges.back().last + 1 == code) {
            ranges.back().last = code;
        } else {
            ranges.push_back({code, code});
        }
    }
    return Predicate().where(1, ranges);
}

struct Kind {
    std::string name;
    Method method;
    friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class FilteredRecall : public testing::TestWithParam<Kind>
{
protected:
    static std::unique_ptr<Filtered> make()
    {
        std::mt19937_64 random(6);
        std::vector<std::uint64_t> attributes;
        for (std::size_t row = 0; row < rows; ++row) {
            attributes.push_back(random() % 1000);
            attributes.push_back(data().cluster[row]);
        }
        const IndexShape shape =
            shape_with_attributes(GetParam().method, ElementType::float32, Metric::l2, dimensions, 2);
        return std::make_unique<Filtered>(shape, dense_rows(data().all.data(), rows, dimensions), attributes, rows);
    }
    // The distance of the k-th nearest row that passes.
    static double farthest(const std::vector<double>& distances, const Filtered& index, const Predicate& predicate)
    {
        std::vector<double> passing;
        for (std::size_t row = 0; row < rows; ++row)
            if (passes(predicate, index.attributes(row))) passing.push_back(distances[row]);
        std::nth_element(passing.begin(), passing.begin() + (k - 1), passing.end());
        return passing[k - 1];
    }
};

TEST_P(FilteredRecall, IsWhatWasAsked)
{
    const auto index = make();
    const Calibration calibration = index->builder().calibration();
    const RowView queries = dense_rows(data().query(0), asked, dimensions);
    std::vector<std::vector<double>> distances(asked, std::vector<double>(rows));
    for (std::size_t q = 0; q < asked; ++q)
        for (std::size_t row = 0; row < rows; ++row) distances[q][row] = index->distance(queries.row(q), row);
    for (const std::uint64_t thousandths : {1000U, 500U, 100U, 10U, 1U}) {
        for (const Where where : {Where::anywhere, Where::near, Where::far}) {
            std::vector<Predicate> predicates;
            for (std::size_t q = 0; q < asked; ++q) predicates.push_back(predicate_of(q, thousandths, where));
            for (const double wanted : {0.9, 0.95, 0.99}) {
                const EffortChoice choice = choose_effort(calibration, k, wanted);
                const ResultKind kind = index->mirror->searcher().result_kind();
                const std::uint32_t width = search_width({kind}, k);
                const SearchAnswer answer = index->search(index->settings(width, choice.effort), queries, predicates);
                double total = 0;
                double squares = 0;
                std::size_t at = 0;
                for (std::size_t q = 0; q < asked; ++q) {
                    const double limit = farthest(distances[q], *index, predicates[q]);
                    std::vector<double> found;
                    for (const std::size_t end = at + answer.counts[q]; at < end; ++at) {
                        const std::size_t row = row_of(answer.results[at].tid);
                        ASSERT_TRUE(index->lives(row, predicates[q]));
                        found.push_back(distances[q][row]);
                    }
                    ASSERT_EQ(answer.counts[q], std::min<std::size_t>(width, index->count(predicates[q])));
                    std::size_t right = 0;
                    for (const double distance : found) right += distance <= limit ? 1 : 0;
                    const double share = std::min(1.0, static_cast<double>(right) / k);
                    total += share / asked;
                    squares += share * share / asked;
                }
                const double error = std::sqrt(std::max(0.0, squares - total * total) / asked);
                EXPECT_GE(total, std::min<double>(wanted, choice.attained) - 0.01 - error)
                    << thousandths << " thousandths, where " << static_cast<int>(where) << ", asked " << wanted
                    << ", effort " << choice.effort << ", ways "
                    << static_cast<int>(filtered_of(answer, 0, asked).ways);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FilteredRecall,
                         testing::Values(Kind{"graph", Method::graph}, Kind{"ivfadc", Method::ivfadc},
                                         Kind{"pqtree", Method::pqtree}, Kind{"matchcount", Method::matchcount}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace pgwarp::filtered_recall_test
