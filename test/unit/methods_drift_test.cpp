// Drift of an ivfadc index: the comparison of new rows with old ones, and the threshold at which they are unlike.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "methods/arrays.h"
#include "methods_fixture.h"
#include "protocol/drift.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t dimensions = 16;
constexpr std::size_t row_count = 9000;
constexpr std::size_t sample_count = 128;

struct Kind {
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
    std::int64_t opq;
    bool compares_codes;
};

// Rows around 16 places, with noise of this width in dimensions [from, to).
std::vector<float> rows_around(std::size_t count, unsigned seed, float width, std::size_t from, std::size_t to)
{
    std::vector<float> rows = random_rows(16, dimensions, 3, 4);
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> noise(-width / 2, width / 2);
    std::vector<float> drawn(count * dimensions);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        const std::size_t d = i % dimensions;
        drawn[i] = rows[i / dimensions % 16 * dimensions + d] + (d >= from && d < to ? noise(generator) : 0);
    }
    return drawn;
}

bool has_rows(const ArrayShape& shape)
{
    return shape.rows == row_count;
}

class Drift : public testing::TestWithParam<Kind>
{
protected:
    Drift() : index_(make()) {}
    Index make()
    {
        const Kind kind = GetParam();
        std::vector<float> rows = rows_around(row_count, 1, 8, 0, 8);
        if (kind.metric == Metric::cosine) normalise_rows(rows, dimensions);
        return {Method::ivfadc,
                kind.metric,
                dimensions,
                rows,
                make_list({{"lists", 60}, {"codes", kind.codes}, {"refine", kind.refine}, {"opq", kind.opq}}),
                pool_};
    }

    std::unique_ptr<Builder> prepare(std::int64_t trained)
    {
        ParameterList options = index_.builder->effective_options();
        options.set(option_trained_rows, trained);
        auto drift = find_method(Method::ivfadc)->make_calibrator(index_.shape, options);
        for (ArrayShape shape : index_.builder->arrays()) {
            std::vector<std::byte> bytes = index_.contents(shape);
            if (has_rows(shape)) {
                // Every (row_count / sample_count)-th row.
                const std::size_t width = bytes.size() / row_count;
                std::vector<std::byte> sampled;
                for (std::size_t i = 0; i < sample_count; ++i) {
                    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(i * (row_count / sample_count) * width);
                    sampled.insert(sampled.end(), at, at + static_cast<std::ptrdiff_t>(width));
                }
                bytes = sampled;
                shape.rows = sample_count;
            }
            for (std::size_t offset = 0; offset < bytes.size(); offset += 1001)
                drift->give(shape, offset,
                            std::span(bytes).subspan(offset, std::min<std::size_t>(1001, bytes.size() - offset)));
        }
        return drift;
    }

    DriftReport compare(std::vector<float> inserted, std::int64_t trained = row_count)
    {
        if (GetParam().metric == Metric::cosine) normalise_rows(inserted, dimensions);
        const auto drift = prepare(trained);
        RowBuffer rows(dimensions);
        std::vector<Tid> tids(inserted.size() / dimensions);
        for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
        rows.append(tids, inserted);
        rows.sort_by_tid();
        drift->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool_);
        const std::vector<ArrayShape> made = drift->arrays();
        EXPECT_EQ(made.size(), 1U);
        EXPECT_STREQ(made[0].name, array_drift);
        DriftReport report;
        EXPECT_EQ(made[0].bytes(), sizeof(report));
        drift->read(array_drift, 0, std::as_writable_bytes(std::span(&report, 1)));
        return report;
    }

    ThreadPool pool_{2};
    Index index_;
};

TEST_P(Drift, RowsLikeTheOldOnesHaveNotDrifted)
{
    const DriftReport report = compare(rows_around(sample_count, 2, 8, 0, 8));
    EXPECT_EQ(report.has_drifted, 0U);
    EXPECT_NEAR(report.new_centroid, report.old_centroid, 0.4 * report.old_centroid);
    EXPECT_EQ(report.old_code > 0, GetParam().compares_codes);
    EXPECT_EQ(report.new_code > 0, GetParam().compares_codes);
    EXPECT_LT(report.old_code, report.old_centroid);
}

TEST_P(Drift, FarRowsHaveDrifted)
{
    const DriftReport report = compare(rows_around(sample_count, 2, 40, 0, 16));
    EXPECT_EQ(report.has_drifted, 1U);
    EXPECT_GT(report.new_centroid, 2.5 * report.old_centroid);
}

// As near to the centroids as the old ones, but in directions that no codeword represents.
TEST_P(Drift, CodesSeeWhatCentroidsDoNot)
{
    const DriftReport report = compare(rows_around(sample_count, 2, 7, 8, 16));
    if (GetParam().metric == Metric::cosine) return;
    EXPECT_EQ(report.has_drifted == 1, GetParam().compares_codes);
    // Codewords of few rows overfit and are not compared.
    const DriftReport few = compare(rows_around(sample_count, 2, 7, 8, 16), 8191);
    EXPECT_EQ(few.has_drifted, 0U);
    EXPECT_EQ(few.new_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Drift,
                         testing::Values(Kind{Metric::l2, 0, 1, 0, true}, Kind{Metric::l2, 0, 2, 0, true},
                                         Kind{Metric::l2, 0, 1, 1, true}, Kind{Metric::inner_product, 2, 1, 0, false},
                                         Kind{Metric::l2, 2, 0, 0, false}, Kind{Metric::l2, 0, 0, 0, false},
                                         Kind{Metric::l2, 1, 1, 0, false}, Kind{Metric::cosine, 0, 1, 0, true}));

TEST(DriftInput, RefusesWhatDoesNotFit)
{
    ThreadPool pool(1);
    const Index index(Method::ivfadc, Metric::l2, 8, random_rows(300, 8, 3), make_list({{"codes", 1}}), pool);
    ParameterList options = index.builder->effective_options();
    options.set(option_trained_rows, 300);
    const auto make = [&] { return find_method(Method::ivfadc)->make_calibrator(index.shape, options); };
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const ArrayShape half = *find_array(arrays, "half");
    const std::vector<std::byte> bytes = index.contents(half);
    EXPECT_THROW(make()->give(make_array_shape("half", ArrayType::f16, 300, 9), 0, bytes), BadRequest);
    EXPECT_THROW(make()->give(make_array_shape("codes", ArrayType::u8, 300, 8), 0, bytes), BadRequest);
    EXPECT_THROW(make()->give(make_array_shape("half", ArrayType::f16, 1U << 30, 8), 0, bytes), BadRequest);
    RowBuffer none(8);
    const BuildProgress quiet{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    const auto without_lists = make();
    without_lists->give(half, 0, bytes);
    EXPECT_THROW(without_lists->run(none, quiet, pool), BadRequest);
    const auto wrong_list = make();
    wrong_list->give(half, 0, bytes);
    const std::vector<std::byte> lists(1200, std::byte{0x7f});
    wrong_list->give(*find_array(arrays, "list_of_row"), 0, lists);
    EXPECT_THROW(wrong_list->run(none, quiet, pool), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test
