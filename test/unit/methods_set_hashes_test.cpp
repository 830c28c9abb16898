// Minhash signatures of sets: how often they agree, what that tells, and the recall that a sample measures.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/matchcount/set_calibration.h"
#include "methods/matchcount/set_hashes.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "protocol/similarity.h"

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

// The shares of the curve are those that a search of the rows of largest count finds, by distance.
TEST(SetRecall, IsWhatCandidatesHold)
{
    constexpr std::size_t rows = 400;
    ThreadPool pool(2);
    const SetHashes hashes(64);
    const OwnedRows sets = random_sets(rows, 12, 40, 5);
    std::vector<std::uint8_t> signatures(rows * hashes.signature_bytes());
    hashes.sign(sets.view(), signatures.data(), pool, nullptr);
    std::vector<std::uint32_t> own;
    OwnedRows queries;
    for (std::uint32_t row = 0; row < rows; row += 4) {
        own.push_back(row);
        queries.append(sets.view().row(row));
    }
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t row = 1; row < rows; row += 9) set_bit(dead, row);
    const auto curve_in_steps = [&](std::size_t step) {
        matchcount::SetRecall recall(hashes, own, queries.view());
        for (std::size_t first = 0; first < rows; first += step) {
            const std::size_t count = std::min(step, rows - first);
            recall.add(sets.view().slice(first, count), &signatures[first * 64], first, dead, pool);
        }
        return recall.curve();
    };
    const Calibration curve = curve_in_steps(rows);
    const Calibration same = curve_in_steps(7);
    ASSERT_GT(curve.count, 5U);
    ASSERT_EQ(curve.count, same.count);
    std::size_t compared = 0;
    for (std::uint32_t point = 0; point < curve.count; ++point) {
        const auto candidates = static_cast<std::size_t>(curve.points[point].effort);
        EXPECT_EQ(curve.points[point].recall[1], same.points[point].recall[1]);
        double share = 0;
        for (std::size_t q = 0; q < own.size(); ++q) {
            const Set query = set_of(queries.view().list(q));
            std::vector<std::pair<int, double>> counted;  // {-count, distance}
            for (std::size_t row = 0; row < rows; ++row) {
                if (row == own[q] || bit_is_set(dead, row)) continue;
                const Set set = set_of(sets.view().list(row));
                counted.emplace_back(-static_cast<int>(agreements(hashes, query, set)), plain_set_jaccard(query, set));
            }
            std::vector<double> all;
            for (const auto& [count, distance] : counted) all.push_back(distance);
            std::sort(all.begin(), all.end());
            std::sort(counted.begin(), counted.end());
            counted.resize(std::min(counted.size(), candidates));
            const auto found = std::ranges::count_if(counted, [&](const auto& row) { return row.second <= all[9]; });
            share += std::min(10.0, static_cast<double>(found)) / 10;
        }
        // The curve is a lower bound at a confidence of 95 %, and counts equal counts by their middle rank.
        EXPECT_LE(curve.points[point].recall[1], share / static_cast<double>(own.size()) + 0.03) << candidates;
        EXPECT_GE(curve.points[point].recall[1], share / static_cast<double>(own.size()) - 0.15) << candidates;
        ++compared;
    }
    EXPECT_GT(compared, 5U);
}

}  // namespace
}  // namespace pgwarp::test
