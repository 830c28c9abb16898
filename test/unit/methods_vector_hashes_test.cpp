// Hash functions of vectors: how many an error asks for, how often they collide, and what match counts tell.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "methods/matchcount/hash_count.h"
#include "methods/matchcount/signature_kernels.h"
#include "methods/matchcount/vector_hashes.h"
#include "methods_fixture.h"
#include "numeric/hash.h"

namespace pgwarp::test::vector_hashes_test
{
namespace
{

using matchcount::HashFamily;
using matchcount::HashForm;
using matchcount::VectorHashes;

constexpr std::size_t width = 24;

// Equation 7 at one similarity, by all terms.
double covered(std::size_t m, double s, double epsilon)
{
    const auto functions = static_cast<double>(m);
    const double low = std::floor((s - epsilon) * functions + 1e-9);
    const double high = std::ceil((s + epsilon) * functions - 1e-9);
    double sum = 0;
    for (std::size_t c = 0; c <= m; ++c) {
        const auto count = static_cast<double>(c);
        if (count < low || count > high) continue;
        sum += std::exp(std::lgamma(functions + 1) - std::lgamma(count + 1) - std::lgamma(functions - count + 1) +
                        count * std::log(s) + (functions - count) * std::log1p(-s));
    }
    return sum;
}

// The least of many similarities, those at which a bound of equation 7 is a whole number included.
double least_covered(std::size_t m, double epsilon)
{
    double least = 1;
    for (double s = 0.0005; s < 1; s += 0.001) least = std::min(least, covered(m, s, epsilon));
    for (std::size_t i = 1; i < m; ++i) {
        const double whole = static_cast<double>(i) / static_cast<double>(m);
        for (const double s : {whole - epsilon, whole + epsilon})
            if (s > 0 && s < 1) least = std::min(least, covered(m, s, epsilon));
    }
    return least;
}

TEST(HashCount, IsTheLeastFromWhichEquation7Holds)
{
    EXPECT_EQ(matchcount::hash_count(0.06, 0.06), 226U);
    for (const auto& [epsilon, delta] : {std::pair(0.06, 0.06), std::pair(0.1, 0.05), std::pair(0.08, 0.2)}) {
        const std::size_t m = matchcount::hash_count(epsilon, delta);
        for (std::size_t more = m; more < m + 40; ++more)
            ASSERT_GE(least_covered(more, epsilon), 1 - delta) << epsilon << ' ' << delta << ' ' << more;
        EXPECT_LT(least_covered(m - 1, epsilon), 1 - delta) << epsilon << ' ' << delta;
    }
    EXPECT_EQ(matchcount::hash_count(0.02, 0.01), matchcount::most_hashes + 1);
}

TEST(SignatureKernels, CountEqualBytes)
{
    std::mt19937 random(7);
    for (const std::size_t bytes : {1U, 2U, 8U, 15U, 16U, 31U, 32U, 33U, 63U, 64U, 65U, 226U, 237U, 255U, 1024U}) {
        constexpr std::size_t rows = 9;
        std::vector<std::uint8_t> all(rows * bytes);
        std::vector<std::uint8_t> query(bytes);
        for (std::uint8_t& byte : all) byte = static_cast<std::uint8_t>(random() % 3);
        for (std::uint8_t& byte : query) byte = static_cast<std::uint8_t>(random() % 3);
        std::copy(query.begin(), query.end(), all.begin());
        std::vector<std::uint16_t> counts(rows);
        matchcount::count_equal_bytes(query.data(), all.data(), rows, bytes, counts.data());
        for (std::size_t i = 0; i < rows; ++i) {
            std::size_t equal = 0;
            for (std::size_t b = 0; b < bytes; ++b) equal += all[i * bytes + b] == query[b];
            ASSERT_EQ(counts[i], equal) << bytes << " bytes, row " << i;
        }
    }
}

TEST(SignatureKernels, FindLeastHashes)
{
    std::mt19937_64 random(9);
    for (const std::size_t functions : {1U, 7U, 8U, 9U, 226U}) {
        for (const std::size_t count : {0U, 1U, 2U, 100U}) {
            std::vector<std::uint64_t> seeds(functions + matchcount::kernel_padding);
            std::vector<std::uint64_t> elements(count);
            for (std::uint64_t& seed : seeds) seed = random();
            for (std::uint64_t& element : elements) element = random();
            std::vector<std::uint64_t> found(functions + matchcount::kernel_padding);
            matchcount::least_hashes(elements, seeds.data(), functions, found.data());
            for (std::size_t f = 0; f < functions; ++f) {
                std::uint64_t least = ~std::uint64_t{0};
                for (const std::uint64_t element : elements) least = std::min(least, mix_hash(element ^ seeds[f]));
                ASSERT_EQ(found[f], least) << functions << " functions, " << count << " elements";
            }
        }
    }
}

std::uint32_t murmur3(const std::vector<std::uint32_t>& blocks, std::uint32_t seed)
{
    std::uint32_t hash = seed;
    for (std::uint32_t block : blocks) {
        block *= 0xcc9e2d51U;
        block = std::rotl(block, 15);
        block *= 0x1b873593U;
        hash ^= block;
        hash = std::rotl(hash, 13);
        hash = hash * 5 + 0xe6546b64U;
    }
    hash ^= static_cast<std::uint32_t>(4 * blocks.size());
    hash ^= hash >> 16;
    hash *= 0x85ebca6bU;
    hash ^= hash >> 13;
    hash *= 0xc2b2ae35U;
    return hash ^ hash >> 16;
}

TEST(SignatureKernels, HashCellsByMurmurHash3)
{
    // A value that the author's code gives: "test" with seed 0.
    ASSERT_EQ(murmur3({0x74736574U}, 0), 0xba6bd213U);
    for (const std::size_t functions : {1U, 3U, 16U, 37U}) {
        std::vector<float> grid = random_rows(functions, width, 3);
        std::vector<float> shift = random_rows(functions, width, 4);
        const std::vector<float> row = random_rows(1, width, 5);
        grid.resize(grid.size() + matchcount::kernel_padding);
        shift.resize(shift.size() + matchcount::kernel_padding);
        std::vector<std::uint32_t> hashes(functions + matchcount::kernel_padding);
        matchcount::bin_row(row.data(), grid.data(), shift.data(), width, functions, hashes.data());
        for (std::size_t f = 0; f < functions; ++f) {
            std::vector<std::uint32_t> cells;
            for (std::size_t d = 0; d < width; ++d) {
                const float cell = std::floor(row[d] * grid[d * functions + f] + shift[d * functions + f]);
                cells.push_back(std::bit_cast<std::uint32_t>(cell == 0 ? 0.0F : cell));
            }
            ASSERT_EQ(hashes[f], murmur3(cells, static_cast<std::uint32_t>(f))) << functions << ' ' << f;
        }
    }
}

// A family, and its probability of a collision.
struct Family {
    HashFamily family;
    Metric metric;
    float hash_width;
    std::function<double(double)> similarity;  // by distance, without re-hashing
    const char* name;
};

// Equation 9, by the trapezoidal rule. density: of the absolute value of the stable distribution.
double equation9(double distance, double w, const std::function<double(double)>& density)
{
    constexpr int steps = 20000;
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
        const double t = (i + 0.5) * w / steps;
        sum += density(t / distance) / distance * (1 - t / w);
    }
    return sum * w / steps;
}

std::vector<Family> families()
{
    const auto normal = [](double t) { return 2 / std::sqrt(2 * std::numbers::pi) * std::exp(-t * t / 2); };
    const auto cauchy = [](double t) { return 2 / std::numbers::pi / (1 + t * t); };
    return {
        {HashFamily::stable, Metric::l2, 4, [=](double d) { return equation9(d, 4, normal); }, "L2"},
        {HashFamily::stable, Metric::l1, 20, [=](double d) { return equation9(d, 20, cauchy); }, "L1"},
        {HashFamily::binning, Metric::l1, 16, [](double d) { return std::exp(-d / 16); }, "random binning"},
        {HashFamily::signs, Metric::cosine, 1, [](double d) { return 1 - std::acos(1 - d) / std::numbers::pi; },
         "signs"},
    };
}

VectorHashes functions_of(const Family& family, std::size_t functions, std::uint64_t seed)
{
    HashForm form;
    form.family = family.family;
    form.metric = family.metric;
    form.functions = functions;
    form.buckets = 251;
    VectorHashes hashes(form, width);
    hashes.draw(family.hash_width, seed);
    return hashes;
}

// Pairs of vectors for each step: that differ in one dimension, that differ in all, and of which the first is near
// zero, where functions without a shift would all change their values.
struct Pair {
    std::vector<float> a;
    std::vector<float> b;
};

std::vector<Pair> pairs_at(std::initializer_list<double> steps)
{
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    std::vector<Pair> pairs;
    for (const double step : steps) {
        for (const float length : {3.0F, 3.0F, 0.001F}) {
            Pair pair{std::vector<float>(width), {}};
            for (float& value : pair.a) value = length * normal(random);
            pair.b = pair.a;
            if (pairs.size() % 3 == 0) {
                pair.b[5] += static_cast<float>(step);
            } else {
                for (float& value : pair.b) value += static_cast<float>(step) / 5 * normal(random);
            }
            pairs.push_back(pair);
        }
    }
    return pairs;
}

std::size_t matches(const VectorHashes& hashes, const Pair& pair)
{
    std::vector<std::uint8_t> a(hashes.signature_bytes());
    std::vector<std::uint8_t> b(hashes.signature_bytes());
    hashes.sign(pair.a.data(), a.data());
    hashes.sign(pair.b.data(), b.data());
    std::uint16_t count = 0;
    hashes.count_matches(a.data(), b.data(), 1, &count);
    return count;
}

TEST(VectorHashes, CollideAsOftenAsTheirFormulasSay)
{
    constexpr std::size_t functions = 1000;
    constexpr std::uint64_t seeds = 20;
    for (const Family& family : families()) {
        for (const Pair& pair : pairs_at({0, 0.5, 2, 5, 12, 30})) {
            const double distance = canonical_distance(family.metric, pair.a.data(), pair.b.data(), width);
            double rate = 0;
            for (std::uint64_t seed = 0; seed < seeds; ++seed)
                rate += static_cast<double>(matches(functions_of(family, functions, seed), pair));
            rate /= functions * seeds;
            // Vectors at no distance differ by rounding under cosine alone.
            double expected = distance < 1e-9 ? 1 : family.similarity(distance);
            // Re-hashed cells, and values that are all buckets apart, collide by chance.
            if (family.family == HashFamily::binning) expected += (1 - expected) / 251;
            const double deviation = std::sqrt(expected * (1 - expected) / (functions * seeds));
            EXPECT_NEAR(rate, expected, 4.5 * deviation + 1e-4) << family.name << " at " << distance;
        }
    }
}

// Theorem 5.1 with equation 7's number of functions, on fixed pairs and functions that vary.
TEST(VectorHashes, EstimateSimilarities)
{
    constexpr double epsilon = 0.06;
    constexpr double delta = 0.06;
    constexpr std::uint64_t seeds = 200;
    const std::size_t functions = matchcount::hash_count(epsilon, delta);
    for (const Family& family : families()) {
        std::size_t within = 0;
        std::size_t all = 0;
        for (const Pair& pair : pairs_at({1, 3, 8})) {
            const double distance = canonical_distance(family.metric, pair.a.data(), pair.b.data(), width);
            const double similarity = family.similarity(distance);
            for (std::uint64_t seed = 0; seed < seeds; ++seed) {
                const double counted = static_cast<double>(matches(functions_of(family, functions, seed), pair));
                const double error = std::fabs(counted / static_cast<double>(functions) - similarity);
                // Equation 7 rounds its bounds to whole counts.
                within += error <= epsilon + 1.0 / static_cast<double>(functions) + 1.0 / 251;
                ++all;
            }
        }
        EXPECT_GE(static_cast<double>(within), (1 - delta) * static_cast<double>(all)) << family.name;
    }
}

// Theorem 5.2: it takes no union over rows, so the share of queries is measured.
TEST(VectorHashes, FindRowsNearlyAsSimilarAsTheNearest)
{
    constexpr double epsilon = 0.06;
    constexpr double delta = 0.06;
    constexpr std::size_t count = 2000;
    constexpr std::size_t queries = 50;
    for (const Family& family : families()) {
        const VectorHashes hashes = functions_of(family, matchcount::hash_count(epsilon, delta), 3);
        const std::vector<float> rows = random_rows(count, width, 21);
        const std::vector<float> asked = random_rows(queries, width, 22);
        std::vector<std::uint8_t> signatures(count * hashes.signature_bytes());
        ThreadPool pool(1);
        hashes.sign(rows, signatures.data(), pool, nullptr);
        std::size_t within = 0;
        for (std::size_t q = 0; q < queries; ++q) {
            const float* query = asked.data() + q * width;
            std::vector<std::uint8_t> signature(hashes.signature_bytes());
            hashes.sign(query, signature.data());
            std::vector<std::uint16_t> counts(count);
            hashes.count_matches(signature.data(), signatures.data(), count, counts.data());
            const auto top = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
            const double best = brute_force(family.metric, query, rows, width, 1)[0].distance;
            const double found = canonical_distance(family.metric, query, rows.data() + top * width, width);
            within += family.similarity(best) - family.similarity(found) <= 2 * epsilon;
        }
        EXPECT_GE(static_cast<double>(within), (1 - 2 * delta) * queries) << family.name;
    }
}

TEST(VectorHashes, DependOnTheSeedAlone)
{
    for (const Family& family : families()) {
        const VectorHashes a = functions_of(family, 50, 1);
        const VectorHashes b = functions_of(family, 50, 1);
        const VectorHashes c = functions_of(family, 50, 2);
        EXPECT_TRUE(std::ranges::equal(a.parameters(), b.parameters()));
        EXPECT_FALSE(std::ranges::equal(a.parameters(), c.parameters()));
    }
}

}  // namespace
}  // namespace pgwarp::test::vector_hashes_test
