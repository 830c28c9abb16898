// The device's form of sparse vectors: what its kernels compute from it, done on the host, never falls below the bound
// by which answers are proven.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "distance/added_place.h"
#include "matchcount/sparse_form.h"
#include "methods/rows/owned_rows.h"
#include "sparse_fixture.h"

namespace pgwarp::test
{
namespace
{

using cuda::matchcount::ListItem;
using cuda::matchcount::SparseForm;
using cuda::matchcount::SparseSlices;
using cuda::matchcount::SparseTuning;
using matchcount::SparseIndex;

float random_value(std::mt19937_64& random, unsigned kind)
{
    const double uniform = static_cast<double>(random() % 1000003 + 1) / 1000003;
    const int sign = random() % 3 == 0 ? -1 : 1;
    constexpr float odd[] = {1e-45F, -1e-45F, 1e18F, -1e18F, 1, 1e-20F, 65504};
    switch (kind) {
        case 0:
            return static_cast<float>(uniform);
        case 1:
            return static_cast<float>(sign * uniform);
        case 2:
            return static_cast<float>(sign * std::ldexp(uniform, static_cast<int>(random() % 24) - 12));
        default:
            return odd[random() % 7];
    }
}

OwnedRows random_rows(std::size_t count, std::size_t most, std::uint64_t universe, unsigned kind,
                      std::mt19937_64& random)
{
    std::vector<Sparse> vectors(count);
    for (Sparse& vector : vectors)
        for (std::size_t left = random() % (most + 1); left > 0; --left)
            vector[static_cast<std::uint32_t>(random() % (1 + random() % universe))] = random_value(random, kind);
    return rows_of_sparse(vectors);
}

// The form of rows, and scores as the kernels compute them.
class FormOfRows
{
public:
    FormOfRows(Metric metric, const OwnedRows& rows, const SparseTuning& tuning)
        : pool_(1), index_(metric, rows.view(), pool_), form_(index_, tuning, pool_)
    {
        halves_.resize(std::size_t{form_.padded_positions()} * form_.columns());
        if (form_.padded_positions() > 0) form_.write_halves(0, form_.padded_positions(), halves_.data(), pool_);
        penalties_ = form_.penalties();
        // In two pieces, as loads have several.
        const std::uint32_t first = form_.slices() / 2;
        const SparseSlices some = form_.make_slices(0, first, 0, pool_);
        const SparseSlices others = form_.make_slices(first, form_.slices() - first, some.postings.size() / 4, pool_);
        for (const SparseSlices* slices : {&some, &others}) {
            starts_.insert(starts_.end(), slices->starts.begin(), slices->starts.end());
            postings_.insert(postings_.end(), slices->postings.begin(), slices->postings.end());
        }
    }

    const SparseForm& form() const { return form_; }
    const std::vector<std::uint32_t>& postings() const { return postings_; }
    std::uint64_t count_quads() { return form_.count_quads(pool_); }
    const SparseIndex& index() const { return index_; }

    // The sums of lists of all positions.
    std::vector<std::uint32_t> sums_of(const SparseForm::Query& query) const
    {
        std::vector<std::uint32_t> sums(std::size_t{form_.slices()} * form_.slice());
        for (std::uint32_t slice = 0; slice < form_.slices(); ++slice)
            for (std::uint32_t i = 0; i < query.item_count; ++i) {
                const ListItem item = query.items[i];
                const std::uint32_t* const starts =
                    starts_.data() + std::size_t{slice} * (form_.lists() + 1) + item.list;
                for (std::uint32_t at = 4 * starts[0]; at < 4 * starts[1]; ++at) {
                    const std::int32_t product = (static_cast<std::int32_t>(postings_[at]) >> 16) * item.multiplier;
                    if (product <= 0) continue;
                    sums[slice * form_.slice() + (postings_[at] & 0xffff)] +=
                        static_cast<std::uint32_t>((product + 0x7fff) >> 15);
                }
            }
        return sums;
    }
    std::vector<std::uint8_t> bytes_of(const SparseForm::Query& query) const
    {
        std::vector<std::uint8_t> bytes;
        for (const std::uint32_t sum : sums_of(query)) {
            EXPECT_LE(sum, cuda::matchcount::most_sum);
            bytes.push_back(
                static_cast<std::uint8_t>((sum + cuda::matchcount::sum_units - 1) / cuda::matchcount::sum_units));
        }
        return bytes;
    }
    // In float64, without the roundings of the device.
    double score(const SparseForm::Query& query, const std::vector<std::uint8_t>& bytes, std::uint32_t position) const
    {
        double product = 0;
        for (std::uint32_t column = 0; column < form_.columns(); ++column)
            product += double{float_of_half(query.halves[column])} *
                       float_of_half(halves_[std::size_t{position} * form_.columns() + column]);
        return query.factor * product - penalties_[position] + double{query.unit} * bytes[place_of(position)];
    }

    std::uint32_t place_of(std::uint32_t position) const
    {
        return position / form_.slice() * form_.slice() + cuda::added_place(position % form_.slice());
    }

private:
    ThreadPool pool_;
    SparseIndex index_;
    SparseForm form_;
    std::vector<half_bits> halves_;
    std::vector<float> penalties_;
    std::vector<std::uint32_t> starts_;
    std::vector<std::uint32_t> postings_;
};

SparseView view_of(const RowView& rows, std::size_t row)
{
    return {rows.list(row).data(), rows.list_weights(row).data(), rows.list(row).size()};
}

// Checks all pairs. Returns the mean difference between scores and the bound, in units of the query's norm times the
// largest row's.
void expect_scores_within(const FormOfRows& made, const OwnedRows& queries, bool tight)
{
    const SparseForm& form = made.form();
    const Metric metric = made.index().metric();
    for (std::size_t q = 0; q < queries.count(); ++q) {
        const SparseView vector = view_of(queries.view(), q);
        std::vector<half_bits> halves(form.columns());
        std::vector<ListItem> items(vector.count);
        SparseForm::Query query{};
        query.halves = halves.data();
        query.items = items.data();
        form.write_query(vector, query);
        if (!query.usable) continue;
        const std::vector<std::uint8_t> bytes = made.bytes_of(query);
        double excess = 0;
        for (std::uint32_t position = 0; position < form.order().positions(); ++position) {
            const std::uint32_t row = form.order().row_of(position);
            const double distance = sparse_distance(metric, vector, made.index().row(row));
            if (std::isnan(distance)) continue;
            const double least = least_sparse_score(form.bounds(), query.bound, distance);
            const double score = made.score(query, bytes, position);
            ASSERT_GE(score, least) << "query " << q << ", row " << row;
            excess += (score - least) / (form.bounds().scale * query.bound.own_norm * form.bounds().largest_norm);
        }
        if (tight) {
            EXPECT_LT(excess / form.rows(), 0.02) << "query " << q;
        }
    }
}

TEST(SparseForm, ScoresAreNotBelowTheirBound)
{
    constexpr Metric metrics[] = {Metric::inner_product, Metric::cosine, Metric::l2};
    for (unsigned seed = 0; seed < 72 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed);
        const unsigned kind = seed % 4;
        const std::uint64_t universe = 1 + random() % 900;
        const std::size_t most = 1 + random() % (seed % 5 == 0 ? 300 : 40);
        const OwnedRows rows = random_rows(1 + random() % 700, most, universe, kind, random);
        const OwnedRows queries = random_rows(6, most, universe + 20, kind, random);
        const FormOfRows made(metrics[seed % 3], rows, {64, 256U << random() % 3});
        if (!made.form().in_range()) continue;
        ASSERT_NO_FATAL_FAILURE(expect_scores_within(made, queries, false));
    }
}

// Of usual vectors the bound is near the scores: otherwise it would let all rows pass.
TEST(SparseForm, BoundsAreNear)
{
    for (const Metric metric : {Metric::inner_product, Metric::cosine, Metric::l2}) {
        std::mt19937_64 random(7);
        const OwnedRows rows = random_rows(2000, 60, 3000, 0, random);
        const OwnedRows queries = random_rows(8, 60, 3000, 0, random);
        const FormOfRows made(metric, rows, {256, 512});
        EXPECT_TRUE(made.form().in_range());
        ASSERT_NO_FATAL_FAILURE(expect_scores_within(made, queries, true));
    }
}

double positive_products(const SparseView& a, const SparseView& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.count; ++i)
        for (std::size_t j = 0; j < b.count; ++j)
            if (a.indices[i] == b.indices[j]) sum += std::max(0.0, static_cast<double>(a.values[i]) * b.values[j]);
    return sum;
}

// Without columns: each rounding is upwards, also those that are smaller than the rounding to bytes.
TEST(SparseForm, SumsOfListsAreNotBelowProducts)
{
    for (unsigned kind = 0; kind < 3; ++kind) {
        std::mt19937_64 random(kind + 50);
        const OwnedRows rows = random_rows(600, 30, 200, kind, random);
        const OwnedRows queries = random_rows(10, 60, 200, kind, random);
        const FormOfRows made(Metric::inner_product, rows, {0, 256});
        for (std::size_t q = 0; q < queries.count(); ++q) {
            const SparseView vector = view_of(queries.view(), q);
            std::vector<half_bits> halves(made.form().columns());
            std::vector<ListItem> items(vector.count);
            SparseForm::Query query{};
            query.halves = halves.data();
            query.items = items.data();
            made.form().write_query(vector, query);
            ASSERT_TRUE(query.usable);
            const std::vector<std::uint32_t> sums = made.sums_of(query);
            for (std::uint32_t position = 0; position < made.form().order().positions(); ++position) {
                const SparseView row = made.index().row(made.form().order().row_of(position));
                const double sum = double{query.unit} * sums[made.place_of(position)] / cuda::matchcount::sum_units;
                ASSERT_GE(sum, made.form().bounds().scale * positive_products(vector, row) * (1 - 1e-12));
            }
        }
    }
}

// Every element of a row is in a column or in a list of its slice; the rest of the quads adds nothing.
TEST(SparseForm, ListsHoldWhatColumnsDoNot)
{
    std::mt19937_64 random(8);
    const OwnedRows rows = random_rows(1500, 50, 400, 0, random);
    FormOfRows made(Metric::inner_product, rows, {64, 256});
    EXPECT_EQ(made.form().columns(), 64U);
    EXPECT_GT(made.form().lists(), 100U);
    EXPECT_EQ(made.form().elements(), rows.view().word_count());
    EXPECT_LT(made.form().list_postings(), made.form().elements());
    EXPECT_EQ(made.count_quads() * 4, made.postings().size());
    const auto filled = std::count_if(made.postings().begin(), made.postings().end(),
                                      [](std::uint32_t posting) { return posting != 0; });
    EXPECT_EQ(static_cast<std::uint64_t>(filled), made.form().list_postings());
}

}  // namespace
}  // namespace pgwarp::test
