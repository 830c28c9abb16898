// ivfadc with less device memory than the whole index needs: the forms of cuda/ivfadc/form.h against the whole form and
// against brute force in float64.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "device/context.h"
#include "ivfadc/form.h"
#include "ivfadc/ivfadc.h"
#include "ivfadc/refine_factor.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

using cuda::ivfadc::Form;

struct Case {
    Metric metric;
    std::int64_t refine;
    std::size_t dimensions;
    std::int64_t subquantizers;
    Form form;
    std::int64_t codes = 0;
};

using Results = std::vector<std::vector<RowResult>>;

constexpr std::size_t row_count = 40000;
constexpr std::size_t query_count = 400;

// A budget that holds this form and no better one.
std::uint64_t budget_for(const IvfOptions& options, const cuda::ivfadc::MirrorSize& size, Form form)
{
    std::uint64_t better = ~std::uint64_t{0};
    for (const Form other : cuda::ivfadc::forms_of(options)) {
        const std::uint64_t bytes = cuda::ivfadc::device_bytes_of(options, size, other);
        if (other == form) return std::min(bytes * 8 / 7 + (std::uint64_t{2} << 20), better - 1);
        better = bytes;
    }
    return 0;
}

std::unique_ptr<Searcher> load(const Index& index, cuda::Context& context, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    auto searcher = cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    index.write_to(*searcher);
    searcher->finish_load(pool);
    return searcher;
}

Results ask(const Searcher& searcher, std::span<const float> queries, std::size_t dimensions, std::uint32_t k,
            std::int64_t probes, ThreadPool& pool, RowBitmap dead = {})
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = queries.size() / dimensions;
    batch.k = k;
    batch.effort = probes;
    batch.dead = dead;
    Results results;
    searcher.search(batch, results, pool);
    return results;
}

double mean_recall(const Results& found, const Results& truth)
{
    double sum = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) sum += recall(found[i], truth[i]);
    return sum / static_cast<double>(truth.size());
}

// The number of rows in both answers whose values differ in a bit.
std::size_t unequal_values(const Results& a, const Results& b)
{
    std::size_t unequal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::map<std::uint32_t, double> values;
        for (const RowResult& one : a[i]) values[one.row] = one.distance;
        for (const RowResult& one : b[i]) {
            const auto known = values.find(one.row);
            if (known != values.end() && known->second != one.distance) ++unequal;
        }
    }
    return unequal;
}

// An index with a searcher in its whole form and one in the form of the case.
struct Prepared {
    explicit Prepared(const Case& given)
    {
        rows = random_rows(row_count, given.dimensions, 1);
        queries = random_rows(query_count, given.dimensions, 1);
        for (float& value : queries) value = value * 0.98F + 0.01F;
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
        index = std::make_unique<Index>(Method::ivfadc, given.metric, given.dimensions, rows,
                                        make_list({{"codes", given.codes},
                                                   {"refine", given.refine},
                                                   {"lists", 100},
                                                   {"subquantizers", given.subquantizers}}),
                                        pool);
        truth.resize(query_count);
        pool.parallel_for(query_count, 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                truth[i] =
                    brute_force(given.metric, queries.data() + i * given.dimensions, rows, given.dimensions, 300);
            }
        });
        const IvfOptions options =
            IvfOptions::resolve(index->builder->effective_options(), row_count, given.dimensions);
        small = std::make_unique<cuda::Context>(
            0, budget_for(options, {row_count, options.lists, given.dimensions}, given.form));
        whole = load(*index, shared_context(), pool);
        tight = load(*index, *small, pool);
    }
    Results nearest(std::size_t count, std::size_t k) const
    {
        Results first(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(count));
        for (auto& one : first) one.resize(k);
        return first;
    }
    ThreadPool pool{0};
    std::vector<float> rows;
    std::vector<float> queries;
    Results truth;
    std::unique_ptr<Index> index;
    std::unique_ptr<cuda::Context> small;
    std::unique_ptr<Searcher> whole;
    std::unique_ptr<Searcher> tight;
};

class IvfadcForm : public testing::TestWithParam<Case>
{
protected:
    // Built once for each case, as building takes longest.
    void SetUp() override
    {
        const Case given = GetParam();
        const Key key{given.metric, given.refine, given.dimensions, given.subquantizers, given.form, given.codes};
        auto& one = made()[key];
        if (!one) one = std::make_unique<Prepared>(given);
        prepared = one.get();
    }
    static void TearDownTestSuite() { made().clear(); }
    std::span<const float> some(std::size_t count) const
    {
        return std::span(prepared->queries).first(count * GetParam().dimensions);
    }
    Prepared* prepared = nullptr;

private:
    using Key = std::tuple<Metric, std::int64_t, std::size_t, std::int64_t, Form, std::int64_t>;
    static std::map<Key, std::unique_ptr<Prepared>>& made()
    {
        static std::map<Key, std::unique_ptr<Prepared>> all;
        return all;
    }
};

TEST_P(IvfadcForm, KeepsRecallAndValues)
{
    const Case given = GetParam();
    EXPECT_FALSE(prepared->whole->residence().split);
    ASSERT_TRUE(prepared->tight->residence().split);
    EXPECT_LE(prepared->small->pool().used(), prepared->small->pool().budget());
    EXPECT_LT(prepared->tight->residence().device_bytes, prepared->whole->residence().device_bytes);
    EXPECT_EQ(prepared->tight->result_kind(), prepared->whole->result_kind());
    for (const std::size_t batch : {std::size_t{1}, std::size_t{20}, query_count}) {
        for (const std::uint32_t k : {1U, 10U, 100U}) {
            const Results truth = prepared->nearest(batch, k);
            for (const std::int64_t probes : {8, 30}) {
                const auto expected = ask(*prepared->whole, some(batch), given.dimensions, k, probes, prepared->pool);
                const auto found = ask(*prepared->tight, some(batch), given.dimensions, k, probes, prepared->pool);
                const std::string what =
                    "batch " + std::to_string(batch) + " k " + std::to_string(k) + " probes " + std::to_string(probes);
                EXPECT_EQ(unequal_values(expected, found), 0U) << what;
                for (const auto& result : found) {
                    ASSERT_EQ(result.size(), k) << what;
                    for (std::size_t i = 1; i < k; ++i) ASSERT_LE(result[i - 1].distance, result[i].distance) << what;
                }
                if (batch * k < 1000) continue;
                const double of_whole = mean_recall(expected, truth);
                const double of_tight = mean_recall(found, truth);
                EXPECT_GE(of_tight, of_whole - 0.01) << what << ": " << of_tight << " against " << of_whole;
                if (given.form == Form::ranked) {
                    EXPECT_GE(mean_recall(found, expected), 0.999) << what;
                }
            }
        }
    }
    const ParameterList settings = prepared->tight->resolved_settings({});
    std::printf("[ measured ] device %llu of %llu bytes, refine factors %lld (k=1)",
                static_cast<unsigned long long>(prepared->tight->residence().device_bytes),
                static_cast<unsigned long long>(prepared->whole->residence().device_bytes),
                static_cast<long long>(settings.get("refine_factor", 0)));
    for (const std::uint32_t k : {10U, 100U}) {
        SearchBatch batch;
        batch.k = k;
        std::printf(" %lld (k=%u)",
                    static_cast<long long>(prepared->tight->resolved_settings(batch).get("refine_factor", 0)), k);
    }
    std::printf("\n");
}

// All rows ranked by values: the answer of brute force itself.
TEST_P(IvfadcForm, ContinuationsAreExact)
{
    const Case given = GetParam();
    SearchBatch batch;
    batch.queries = some(1);
    batch.count = 1;
    batch.k = 300;
    std::vector<RowResult> expected;
    std::vector<RowResult> found;
    prepared->whole->search_exact(batch, -HUGE_VAL, 0, expected, prepared->pool);
    prepared->tight->search_exact(batch, -HUGE_VAL, 0, found, prepared->pool);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, expected[i].row);
        ASSERT_EQ(found[i].distance, expected[i].distance);
    }
    if (given.refine == 2 && given.metric == Metric::l2) {
        const std::vector<RowResult>& truth = prepared->truth[0];
        for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_EQ(found[i].distance, truth[i].distance);
    }
}

TEST_P(IvfadcForm, LeavesDeadRowsOut)
{
    const Case given = GetParam();
    std::vector<std::uint64_t> dead((row_count + 63) / 64, 0x5555aaaa0f0f3333ULL);
    const auto found = ask(*prepared->tight, some(300), given.dimensions, 10, 50, prepared->pool, dead);
    for (const auto& result : found) {
        ASSERT_EQ(result.size(), 10U);
        for (const RowResult& one : result) ASSERT_FALSE(bit_is_set(dead, one.row));
    }
    EXPECT_GE(mean_recall(found, ask(*prepared->whole, some(300), given.dimensions, 10, 50, prepared->pool, dead)),
              0.98);
}

TEST_P(IvfadcForm, AnswersManyNeighbours)
{
    const Case given = GetParam();
    for (const std::uint32_t k : {2000U, 60000U}) {
        const auto found = ask(*prepared->tight, some(3), given.dimensions, k, 100, prepared->pool);
        const auto expected = ask(*prepared->whole, some(3), given.dimensions, k, 100, prepared->pool);
        ASSERT_EQ(found[0].size(), std::min<std::size_t>(k, row_count));
        EXPECT_GE(mean_recall(found, expected), 0.98);
        EXPECT_EQ(unequal_values(found, expected), 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, IvfadcForm,
    testing::Values(Case{Metric::l2, 1, 128, 0, Form::codes}, Case{Metric::l2, 1, 35, 7, Form::codes},
                    Case{Metric::cosine, 1, 100, 25, Form::codes}, Case{Metric::inner_product, 1, 64, 32, Form::codes},
                    Case{Metric::l2, 2, 65, 13, Form::codes}, Case{Metric::cosine, 2, 67, 22, Form::codes},
                    Case{Metric::l2, 2, 96, 0, Form::ranked}, Case{Metric::cosine, 2, 33, 0, Form::ranked},
                    Case{Metric::inner_product, 2, 127, 0, Form::ranked}, Case{Metric::l2, 1, 128, 0, Form::codes, 2},
                    Case{Metric::cosine, 2, 65, 0, Form::codes, 2},
                    Case{Metric::inner_product, 1, 30, 0, Form::codes, 2}, Case{Metric::l2, 1, 128, 0, Form::codes, 1},
                    Case{Metric::cosine, 1, 51, 0, Form::codes, 1}, Case{Metric::l2, 2, 64, 0, Form::codes, 1}));

TEST(IvfadcForms, NoRoomForAnyIsShortMemory)
{
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(20000, 64, 2);
    const Index index(Method::ivfadc, Metric::l2, 64, rows, make_list({{"refine", 1}, {"lists", 64}}), pool);
    cuda::Context tiny(0, std::uint64_t{256} << 10);
    EXPECT_THROW(load(index, tiny, pool), std::bad_alloc);
    EXPECT_EQ(tiny.pool().used(), 0U);
}

TEST(IvfadcForms, BestFirst)
{
    IvfOptions options;
    options.product_codes = true;
    options.refine = IvfRefine::none;
    EXPECT_EQ(cuda::ivfadc::forms_of(options), (std::vector<Form>{Form::whole}));
    options.refine = IvfRefine::half;
    EXPECT_EQ(cuda::ivfadc::forms_of(options), (std::vector<Form>{Form::whole, Form::codes}));
    options.refine = IvfRefine::full;
    EXPECT_EQ(cuda::ivfadc::forms_of(options), (std::vector<Form>{Form::whole, Form::ranked, Form::codes}));
    options.product_codes = false;
    EXPECT_EQ(cuda::ivfadc::forms_of(options), (std::vector<Form>{Form::whole, Form::ranked, Form::codes}));
    options.byte_codes = true;
    EXPECT_EQ(cuda::ivfadc::forms_of(options), (std::vector<Form>{Form::whole, Form::codes}));
    options.byte_codes = false;
    options.subquantizers = 32;
    const cuda::ivfadc::MirrorSize size{1000000, 2000, 128};
    const std::uint64_t whole = cuda::ivfadc::device_bytes_of(options, size, Form::whole);
    const std::uint64_t ranked = cuda::ivfadc::device_bytes_of(options, size, Form::ranked);
    EXPECT_EQ(whole - ranked, 512000000U);
    options.product_codes = true;
    EXPECT_LT(cuda::ivfadc::device_bytes_of(options, size, Form::codes), ranked / 5);
}

TEST(IvfadcForms, RefineFactorsBetweenTheMeasured)
{
    const cuda::ivfadc::RefineFactors factors{{20, 60, 300}};
    EXPECT_EQ(factors.of(1), 20U);
    EXPECT_EQ(factors.of(10), 6U);
    EXPECT_EQ(factors.of(100), 3U);
    EXPECT_EQ(factors.of(1000), 3U);
    EXPECT_LE(factors.of(5), 20U);
    EXPECT_GE(factors.of(5) * 5, 20U);
    EXPECT_LE(factors.of(5) * 5, 65U);
}

}  // namespace
}  // namespace pgwarp::test
