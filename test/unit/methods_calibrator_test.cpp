// Measuring the recall of an ivfadc index anew, by the rows as the index keeps them.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "methods/arrays.h"
#include "methods/ivfadc/build_samples.h"
#include "methods_fixture.h"
#include "numeric/hash.h"
#include "numeric/sample.h"
#include "protocol/calibration.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
    std::size_t dimensions;
    const char* kept;
};

// Gives the arrays in pieces of `piece` bytes, those of the rows last; the live rows are searched for.
struct Given {
    std::vector<std::uint32_t> sample;
    std::size_t piece = 1001;
    std::vector<std::uint64_t> dead = {};
};

void give_whole(Builder& calibrator, const ArrayShape& shape, std::span<const std::byte> bytes, std::size_t piece)
{
    for (std::size_t offset = 0; offset < bytes.size(); offset += piece) {
        calibrator.give(shape, offset, bytes.subspan(offset, std::min(piece, bytes.size() - offset)));
    }
}

void give_sample(Builder& calibrator, std::span<const std::byte> kept, std::size_t rows, const Given& given)
{
    const std::size_t width = kept.size() / rows;
    std::vector<std::uint32_t> chosen;
    std::vector<std::byte> queries;
    for (const std::uint32_t row : given.sample) {
        if (bit_is_set(given.dead, row) || chosen.size() == most_calibration_queries) continue;
        chosen.push_back(row);
        const auto from = kept.begin() + static_cast<std::ptrdiff_t>(row * width);
        queries.insert(queries.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    give_whole(calibrator, make_array_shape(array_calib_row, ArrayType::u32, chosen.size(), 1),
               std::as_bytes(std::span(chosen)), given.piece);
    give_whole(calibrator, make_array_shape(array_calib_query, ArrayType::u8, chosen.size(), width), queries,
               given.piece);
}

Calibration measure_anew(const Index& index, const char* kept, ThreadPool& pool, const Given& given)
{
    const auto calibrator =
        find_method(Method::ivfadc)->make_calibrator(index.shape, index.builder->effective_options());
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const std::size_t rows = find_array(arrays, "list_of_row")->rows;
    for (const char* name : {"centroids", "half_mean", "half_scale", "list_of_row", "code_scale"}) {
        const ArrayShape* array = find_array(arrays, name);
        if (array != nullptr) give_whole(*calibrator, *array, index.contents(*array), given.piece);
    }
    if (!given.dead.empty()) {
        give_whole(*calibrator, make_array_shape(array_calib_dead, ArrayType::u64, given.dead.size(), 1),
                   std::as_bytes(std::span(given.dead)), given.piece);
    }
    const ArrayShape& shape = *find_array(arrays, kept);
    const std::vector<std::byte> bytes = index.contents(shape);
    give_sample(*calibrator, bytes, rows, given);
    give_whole(*calibrator, shape, bytes, given.piece);
    RowBuffer none(index.shape.dimensions);
    calibrator->run(none, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    return calibrator->calibration();
}

std::vector<std::uint32_t> sample_of_build(const Index& index, std::size_t rows)
{
    const IvfOptions options = IvfOptions::resolve(index.builder->effective_options(), rows, index.shape.dimensions);
    return sample_rows(rows, calibration_sample(options, rows), build_seed + 2);
}

std::vector<std::uint32_t> all_rows(std::size_t count)
{
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
}

class Recalibration : public testing::TestWithParam<Case>
{
protected:
    void make(std::size_t count)
    {
        // On a surface of few dimensions without clusters: there, neighbours lie in more lists when rows are fewer.
        constexpr std::size_t latent = 5;
        const std::size_t dimensions = GetParam().dimensions;
        std::mt19937 generator(1);
        std::normal_distribution<float> normal(0, 1);
        std::vector<float> directions(latent * dimensions);
        for (float& value : directions) value = normal(generator);
        rows.assign(count * dimensions, 0);
        for (std::size_t i = 0; i < count * latent; ++i) {
            const float along = normal(generator);
            for (std::size_t d = 0; d < dimensions; ++d)
                rows[i / latent * dimensions + d] += along * directions[i % latent * dimensions + d];
        }
        if (GetParam().metric == Metric::cosine) normalise_rows(rows, GetParam().dimensions);
    }
    Index build()
    {
        const Case given = GetParam();
        return {Method::ivfadc,
                given.metric,
                given.dimensions,
                rows,
                make_list({{"codes", given.codes}, {"refine", given.refine}}),
                pool};
    }
    ThreadPool pool{2};
    std::vector<float> rows;
};

TEST_P(Recalibration, MeasuresWhatTheBuildDid)
{
    make(2000);
    const Index index = build();
    const Calibration built = index.builder->calibration();
    const Calibration anew = measure_anew(index, GetParam().kept, pool, {sample_of_build(index, 2000)});
    ASSERT_EQ(anew.count, built.count);
    EXPECT_EQ(anew.sample, built.sample);
    // Indexes with vectors give the same curve; near neighbours that are rounded may change places.
    const double rounding = GetParam().refine == 2 ? 0 : GetParam().refine == 1 ? 0.03 : 0.06;
    for (std::uint32_t i = 0; i < anew.count; ++i) {
        EXPECT_EQ(anew.points[i].effort, built.points[i].effort);
        for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(anew.points[i].recall[k], built.points[i].recall[k], rounding);
    }
    EXPECT_EQ(anew.points[anew.count - 1].recall[1], 1);
}

TEST_P(Recalibration, DependsOnNoPieces)
{
    make(2000);
    const Index index = build();
    Given given{sample_of_build(index, 2000)};
    const Calibration small = measure_anew(index, GetParam().kept, pool, given);
    given.piece = 1U << 20;
    const Calibration large = measure_anew(index, GetParam().kept, pool, given);
    EXPECT_EQ(std::memcmp(&small, &large, sizeof(small)), 0);
}

// Mean share of the ten nearest live rows that searches for every 41st row find.
double recall_at(const Index& index, const std::vector<float>& rows, RowBitmap dead, std::int64_t effort,
                 ThreadPool& pool)
{
    const std::size_t dimensions = index.shape.dimensions;
    std::vector<float> queries;
    std::vector<std::uint32_t> own;
    for (std::size_t row = 0; row < rows.size() / dimensions; row += 41) {
        own.push_back(static_cast<std::uint32_t>(row));
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row * dimensions);
        queries.insert(queries.end(), from, from + static_cast<std::ptrdiff_t>(dimensions));
    }
    const auto found = index.search(queries, 11, pool, {}, dead, effort);
    double total = 0;
    for (std::size_t q = 0; q < own.size(); ++q) {
        auto expected = brute_force(static_cast<Metric>(index.shape.metric), queries.data() + q * dimensions, rows,
                                    dimensions, 11, dead);
        std::erase_if(expected, [&](const RowResult& result) { return result.row == own[q]; });
        expected.resize(10);
        total += recall(found[q], expected);
    }
    return total / static_cast<double>(own.size());
}

// When rows die, the remaining neighbours are farther away: the recall measured before is too high.
TEST_P(Recalibration, DeadRowsAreNoNeighbours)
{
    if (GetParam().dimensions < 8) GTEST_SKIP() << "too few dimensions to probe in part";
    make(6000);
    const Index index = build();
    Given given{all_rows(6000)};
    given.dead.resize((6000 + 63) / 64);
    for (std::size_t row = 0; row < 6000; ++row) {
        if (mix_hash(row) % 5 != 0) set_bit(given.dead, row);
    }
    const Calibration built = index.builder->calibration();
    const Calibration anew = measure_anew(index, GetParam().kept, pool, given);
    ASSERT_EQ(anew.sample, built.sample);
    const std::int64_t old_effort = choose_effort(built, 10, 0.9).effort;
    const std::int64_t new_effort = choose_effort(anew, 10, 0.9).effort;
    EXPECT_GT(new_effort, old_effort);
    EXPECT_GE(recall_at(index, rows, given.dead, new_effort, pool), 0.88);
    EXPECT_LT(recall_at(index, rows, given.dead, old_effort, pool), 0.86);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Recalibration,
                         testing::Values(Case{Metric::l2, 0, 1, 32, "half"}, Case{Metric::l2, 0, 2, 32, "vectors"},
                                         Case{Metric::l2, 1, 1, 131, "half"}, Case{Metric::l2, 2, 0, 32, "codes"},
                                         Case{Metric::inner_product, 0, 1, 32, "half"},
                                         Case{Metric::cosine, 2, 0, 32, "codes"},
                                         Case{Metric::cosine, 0, 1, 32, "half"}, Case{Metric::l2, 2, 1, 3, "half"}));

TEST(RecalibrationInput, RefusesWhatDoesNotFit)
{
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(300, 8, 3);
    const Index index(Method::ivfadc, Metric::l2, 8, rows, make_list({{"codes", 1}}), pool);
    const ParameterList options = index.builder->effective_options();
    const auto make = find_method(Method::ivfadc)->make_calibrator;
    // Codes alone can't measure recall.
    EXPECT_THROW(make(index.shape, make_list({{"codes", 0}, {"refine", 0}})), BadRequest);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const ArrayShape& half = *find_array(arrays, "half");
    const ArrayShape& lists = *find_array(arrays, "list_of_row");
    const std::vector<std::byte> bytes = index.contents(half);
    // Rows before the arrays that they are compared by; rows of lists that don't exist; pieces out of order; rows cut
    // short.
    EXPECT_THROW(make(index.shape, options)->give(half, 0, bytes), BadRequest);
    const auto prepared = [&](std::vector<std::byte> list_bytes) {
        auto calibrator = make(index.shape, options);
        for (const char* name : {"centroids", "half_mean", "half_scale"}) {
            give_whole(*calibrator, *find_array(arrays, name), index.contents(*find_array(arrays, name)), 1U << 20);
        }
        give_whole(*calibrator, lists, list_bytes, 1U << 20);
        give_sample(*calibrator, bytes, 300, {all_rows(300)});
        return calibrator;
    };
    EXPECT_THROW(prepared(std::vector<std::byte>(1200, std::byte{0x7f}))->give(half, 0, bytes), BadRequest);
    EXPECT_THROW(prepared(index.contents(lists))->give(half, 16, std::span(bytes).subspan(16)), BadRequest);
    RowBuffer none(8);
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    const auto half_way = prepared(index.contents(lists));
    half_way->give(half, 0, std::span(bytes).first(1600));
    EXPECT_THROW(half_way->run(none, progress, pool), BadRequest);
    EXPECT_THROW(half_way->give(lists, 0, index.contents(lists)), BadRequest);
    EXPECT_THROW(prepared(index.contents(lists))->run(none, progress, pool), BadRequest);
    ArrayShape wide = make_array_shape(array_calib_query, ArrayType::u8, 1U << 31, 16);
    EXPECT_THROW(make(index.shape, options)->give(wide, 0, std::span(bytes).first(16)), BadRequest);
    EXPECT_THROW(make(index.shape, options)->give(*find_array(arrays, "half"), 1, {}), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test
