// Minhash signatures of sets: how often they agree, what that tells, and the recall that a sample measures.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/matchcount/set_calibration.h"
#include "methods/matchcount/set_hashes.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "protocol/similarity.h"
#include "protocol/standing_out.h"

namespace pgwarp::test
{
namespace
{

using matchcount::SetHashes;

std::vector<std::uint8_t> signature_of(const SetHashes& hashes, const Set& set)
{
    std::vector<std::uint8_t> signature(hashes.signature_bytes());
    hashes.sign(words_of(set), signature.data());
    return signature;
}

std::uint32_t agreements(const SetHashes& hashes, const Set& a, const Set& b)
{
    std::uint16_t count = 0;
    hashes.count_matches(signature_of(hashes, a).data(), signature_of(hashes, b).data(), 1, &count);
    return count;
}

// Two sets of `size` elements, `common` of them in both; the elements are numbers that follow one another from `first`
// on, or that are spread.
std::pair<Set, Set> pair_of(std::uint64_t first, std::size_t size, std::size_t common, bool sparse)
{
    std::pair<Set, Set> sets;
    for (std::uint64_t i = 0; i < size; ++i) {
        sets.first.insert(spread(first + i, sparse));
        sets.second.insert(spread(first + size - common + i, sparse));
    }
    return sets;
}

// Indexes store signatures: these are the first digests by definition.
TEST(SetHashes, SignTheSameForEver)
{
    EXPECT_EQ(signature_of(SetHashes(8), {1, 2, 3}), (std::vector<std::uint8_t>{81, 83, 1, 69, 119, 219, 170, 126}));
    EXPECT_EQ(signature_of(SetHashes(8), {(std::uint64_t{1} << 63) + 5}),
              (std::vector<std::uint8_t>{61, 99, 73, 4, 117, 237, 220, 54}));
}

TEST(SetHashes, AgreeWithTheProbabilityOfTheSimilarity)
{
    constexpr std::size_t pairs = 40;
    const SetHashes hashes(512);
    for (const bool sparse : {false, true}) {
        for (const auto& [size, common] :
             {std::pair(10, 0), {10, 2}, {10, 7}, {300, 0}, {300, 30}, {300, 200}, {300, 290}, {300, 300}}) {
            const double s = static_cast<double>(common) / (2 * size - common);
            const double expected = s + (1 - s) / matchcount::set_digests;
            double agreed = 0;
            for (std::size_t i = 0; i < pairs; ++i) {
                const auto [a, b] =
                    pair_of(i * 1000, static_cast<std::size_t>(size), static_cast<std::size_t>(common), sparse);
                agreed += agreements(hashes, a, b);
            }
            const double trials = pairs * static_cast<double>(hashes.functions());
            const double deviation = std::sqrt(expected * (1 - expected) / trials);
            EXPECT_NEAR(agreed / trials, expected, 4 * deviation + 1e-12) << size << ' ' << common << ' ' << sparse;
        }
    }
}

// Of fixed pairs, more than the error is rare, and there is no bias.
TEST(SetHashes, EstimateSimilaritiesWithinTheirError)
{
    constexpr int pairs = 300;
    const SetHashes hashes(226);
    ParameterList effective;
    effective.set(option_hashes, 226);
    effective.set(option_rehashed, matchcount::set_digests);
    const double error = error_of_estimate(effective, usual_delta);
    for (const std::size_t common : {0U, 10U, 30U, 50U}) {
        const double s = static_cast<double>(common) / static_cast<double>(120 - common);
        double sum = 0;
        int beyond = 0;
        for (int i = 0; i < pairs; ++i) {
            const auto [a, b] = pair_of(static_cast<std::uint64_t>(i) * 500, 60, common, true);
            const double estimate = hashes.similarity(agreements(hashes, a, b));
            sum += estimate;
            beyond += std::abs(estimate - s) > error;
        }
        EXPECT_LE(beyond, pairs * usual_delta);
        EXPECT_NEAR(sum / pairs, s, 4 * std::sqrt((s * (1 - s) + 1.0 / matchcount::set_digests) / (226.0 * pairs)));
    }
    EXPECT_EQ(hashes.similarity(226), 1);
}

TEST(SetHashes, EmptySetsAgreeWithEmptySetsAlone)
{
    const SetHashes hashes(1024);
    EXPECT_EQ(agreements(hashes, {}, {}), 1024U);
    for (std::uint64_t element = 0; element < 20; ++element) EXPECT_EQ(agreements(hashes, {}, {element}), 0U);
}

// Many sets at once are signed like one, whatever the threads; no digest is that of an empty set.
TEST(SetHashes, SignManySets)
{
    ThreadPool pool(3);
    const SetHashes hashes(33);
    const OwnedRows sets = random_sets(500, 20, 1000, 3);
    std::vector<std::uint8_t> signatures(500 * hashes.signature_bytes());
    hashes.sign(sets.view(), signatures.data(), pool, nullptr);
    for (std::size_t i = 0; i < 500; ++i) {
        const Set set = set_of(sets.view().list(i));
        const std::vector<std::uint8_t> own = signature_of(hashes, set);
        ASSERT_TRUE(std::equal(own.begin(), own.end(), signatures.begin() + static_cast<std::ptrdiff_t>(i * 33)));
        for (const std::uint8_t digest : own) ASSERT_EQ(digest >= matchcount::empty_set_digest, set.empty());
    }
}

TEST(ElementIndex, FindsTheSetsThatHaveAnElement)
{
    const OwnedRows sets = random_sets(60, 12, 50, 4);
    const matchcount::ElementIndex index(sets.view());
    for (std::uint64_t element = 0; element < 60; ++element) {
        std::vector<std::uint16_t> expected;
        for (std::uint16_t i = 0; i < 60; ++i)
            if (set_of(sets.view().list(i)).contains(element)) expected.push_back(i);
        const std::span<const std::uint16_t> found = index.find(element);
        EXPECT_EQ(std::vector<std::uint16_t>(found.begin(), found.end()), expected);
    }
    EXPECT_TRUE(matchcount::ElementIndex(OwnedRows().view()).find(0).empty());
}

// The similarity is where the estimate, less three errors, meets the fence plus three.
TEST(StandingOut, IsBeyondTheErrorsOfTwoEstimates)
{
    const auto share = [](double similarity) { return similarity + (1 - similarity) / 254; };
    for (const double m : {8.0, 64.0, 226.0, 1024.0}) {
        double before = 0;
        for (const double third : {0.0, 0.05, 0.3, 0.5, 0.7, 1.0}) {
            const double first = third / 2;
            const double similarity = standing_out_similarity(first, third, m);
            const double fence = share(std::min(1.0, third + 1.5 * (third - first)));
            const auto error = [m](double p) { return 3 * std::sqrt(p * (1 - p) / m); };
            EXPECT_GE(similarity, before);
            EXPECT_LE(similarity, 1);
            if (similarity < 1) {
                const double p = share(similarity);
                EXPECT_NEAR(p - error(p), fence + error(fence), 1e-9);
            }
            before = similarity;
        }
        EXPECT_EQ(standing_out_similarity(1, 1, m), 1);
        EXPECT_EQ(standing_out_similarity(0, 1, m), 1);
    }
    EXPECT_NEAR(standing_out_similarity(0, 0, 226), 0.0623, 1e-4);
}

// Sets in groups of the given size that share about the given part of 40 elements.
OwnedRows sets_in_groups(std::size_t count, std::size_t size, double shared, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Set> sets(count);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::uint64_t e = 0; e < 40; ++e) {
            const bool common = static_cast<double>(random() % 1000) < shared * 1000;
            sets[i].insert(common ? i / size * 100 + e : (std::uint64_t{1} << 32) + random() % 100000);
        }
    }
    return rows_of_parts(sets);
}

// An index's rows as the measurement takes them, every fourth of which is a query.
struct Sampled {
    OwnedRows sets;
    SetHashes hashes;
    std::vector<std::uint8_t> signatures;
    std::vector<std::uint32_t> own;
    OwnedRows queries;
    std::vector<std::uint8_t> own_signatures;
    std::vector<std::uint64_t> dead;

    Sampled(OwnedRows rows, std::size_t functions) : sets(std::move(rows)), hashes(functions)
    {
        ThreadPool pool(2);
        signatures.resize(sets.count() * functions);
        hashes.sign(sets.view(), signatures.data(), pool, nullptr);
        for (std::uint32_t row = 0; row < sets.count(); row += 4) {
            own.push_back(row);
            queries.append(sets.view().row(row));
            own_signatures.insert(own_signatures.end(), &signatures[row * functions],
                                  &signatures[row * functions] + functions);
        }
    }
    matchcount::SetCalibration measure(std::size_t step)
    {
        ThreadPool pool(2);
        matchcount::SetRecall recall(hashes, own, queries.view(), own_signatures);
        for (std::size_t first = 0; first < sets.count(); first += step) {
            const std::size_t count = std::min(step, sets.count() - first);
            recall.add(sets.view().slice(first, count), &signatures[first * hashes.functions()], first, dead, pool);
        }
        return recall.measured();
    }
};

// The distances of the ten nearest rows that stand out for a query.
std::vector<double> near_standing_out(const std::vector<double>& ascending, std::size_t functions)
{
    const std::size_t n = ascending.size();
    const auto step_below = [](double distance) { return std::floor((1 - distance) * 1000) / 1000; };
    const double third = step_below(ascending[n / 4]);
    const double first = step_below(ascending[n - 1 - n / 4]);
    const double within = 1 - standing_out_similarity(first, third, static_cast<double>(functions));
    std::vector<double> near;
    for (const double distance : ascending)
        if (distance <= within + 1e-7 && near.size() < 10) near.push_back(distance);
    return near;
}

// The shares of the curve are those of the nearest rows that stand out, which a search of the rows of largest count
// finds, by distance.
TEST(SetRecall, IsWhatCandidatesHold)
{
    constexpr std::size_t rows = 400;
    Sampled sampled(sets_in_groups(rows, 20, 0.6, 5), 64);
    sampled.dead.resize((rows + 63) / 64);
    for (std::size_t row = 1; row < rows; row += 9) set_bit(sampled.dead, row);
    const matchcount::SetCalibration measured = sampled.measure(rows);
    const matchcount::SetCalibration same = sampled.measure(7);
    const Calibration& curve = measured.curve;
    ASSERT_GT(curve.count, 5U);
    ASSERT_EQ(curve.count, same.curve.count);
    EXPECT_EQ(measured.standing_out, same.standing_out);
    EXPECT_EQ(measured.standing_within, same.standing_within);
    EXPECT_GT(measured.standing_out, 80U);
    using Counted = std::vector<std::pair<int, double>>;  // {-count, distance}, ascending
    std::vector<std::pair<Counted, std::vector<double>>> queries;
    for (std::size_t q = 0; q < sampled.own.size(); ++q) {
        const Set query = set_of(sampled.queries.view().list(q));
        std::vector<std::uint16_t> counts(rows);
        sampled.hashes.count_matches(&sampled.own_signatures[q * 64], sampled.signatures.data(), rows, counts.data());
        Counted counted;
        std::vector<double> all;
        for (std::size_t row = 0; row < rows; ++row) {
            if (row == sampled.own[q] || bit_is_set(sampled.dead, row)) continue;
            all.push_back(plain_set_jaccard(query, set_of(sampled.sets.view().list(row))));
            counted.emplace_back(-static_cast<int>(counts[row]), all.back());
        }
        std::sort(all.begin(), all.end());
        std::sort(counted.begin(), counted.end());
        const std::vector<double> near = near_standing_out(all, 64);
        if (!near.empty()) queries.emplace_back(std::move(counted), near);
    }
    EXPECT_EQ(queries.size(), measured.standing_out);
    for (std::uint32_t point = 0; point < curve.count; ++point) {
        const auto candidates = static_cast<std::size_t>(curve.points[point].effort);
        EXPECT_EQ(curve.points[point].recall[1], same.curve.points[point].recall[1]);
        double share = 0;
        for (const auto& [counted, near] : queries) {
            const auto end = counted.begin() + static_cast<std::ptrdiff_t>(std::min(counted.size(), candidates));
            const double last = near.back();
            const auto found =
                std::count_if(counted.begin(), end, [last](const auto& row) { return row.second <= last; });
            share += std::min(1.0, static_cast<double>(found) / static_cast<double>(near.size()));
        }
        share /= static_cast<double>(queries.size());
        // The curve is a lower bound at a confidence of 95 %, and counts equal counts by their middle rank.
        EXPECT_LE(curve.points[point].recall[1], share + 0.03) << candidates;
        EXPECT_GE(curve.points[point].recall[1], share - 0.15) << candidates;
    }
}

// Where no row stands out, rows are made up at half of the distance within which rows would: these few candidates find,
// and one that is no candidate is counted as missed.
TEST(SetRecall, MakesUpRowsWhereNoneStandsOut)
{
    const matchcount::SetCalibration many = Sampled(sets_in_groups(1000, 1000, 0, 6), 226).measure(1000);
    EXPECT_EQ(many.standing_out, 0U);
    EXPECT_NEAR(many.standing_within, 937700, 2000);
    EXPECT_EQ(many.curve.sample, 250U);
    EXPECT_EQ(many.curve.points[0].effort, 10);
    EXPECT_GT(many.curve.points[0].recall[1], 0.98);
}

// A made-up row is as often among the candidates as the binomial law of its match count and its place among equal
// counts say.
TEST(CandidateRecall, CountsMadeUpRows)
{
    constexpr std::size_t queries = 100;
    std::vector<std::uint32_t> own(queries);
    for (std::uint32_t q = 0; q < queries; ++q) own[q] = 1000 + q;
    matchcount::CandidateRecall recall(10, own);
    std::vector<float> scores(100);
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = 0.8F + static_cast<float>(i) * 0.001F;
    const std::vector<std::uint16_t> counts(100, 5);
    for (std::size_t q = 0; q < queries; ++q) recall.add(q, scores, counts, 0, {});
    const std::vector<matchcount::CountedNeighbours> none(queries, {0.5F, 0.5});
    EXPECT_FALSE(recall.has_counted(0, none[0]));
    const Calibration curve = recall.curve(101, none);
    const double of_ten[] = {1, 10, 45, 120, 210, 252, 210, 120, 45, 10, 1};
    for (std::uint32_t point = 0; point + 1 < curve.count; ++point) {
        const auto candidates = static_cast<double>(curve.points[point].effort);
        double chance = of_ten[5] * candidates / 101;
        for (std::size_t c = 6; c <= 10; ++c) chance += of_ten[c];
        EXPECT_NEAR(curve.points[point].recall[1], chance / 1024, 0.02) << candidates;
    }
    // All neighbours count where the caller says nothing.
    EXPECT_LT(recall.curve(101).points[0].recall[1], 0.2);
}

// A few sampled rows with others that stand out, all of which are found: rows that are made up make up for the sample.
TEST(SetRecall, RestsOnFewQueries)
{
    std::vector<Set> sets;
    const OwnedRows random = sets_in_groups(1000, 1000, 0, 8);
    for (std::size_t i = 0; i < 1000; ++i) sets.push_back(set_of(random.view().list(i % 250 == 1 ? i - 1 : i)));
    const matchcount::SetCalibration measured = Sampled(rows_of_parts(sets), 226).measure(1000);
    EXPECT_EQ(measured.standing_out, 2U);  // 0 and 500 are queries
    EXPECT_GT(measured.curve.points[0].recall[1], 0.98);
}

}  // namespace
}  // namespace pgwarp::test
