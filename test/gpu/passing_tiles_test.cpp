// Filtered searches by matrix tiles that the queries of a batch share: each answer is that of the CPU's canonical
// distance to all rows that live and pass, to the bit, or there is none. Where scores tell rows apart there is one.
#include <cfloat>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "device/wait.h"
#include "distance/proposals.h"
#include "exact/exact.h"
#include "graph_fixture.h"
#include "methods/bounds.h"
#include "methods/ordered_scan.h"
#include "methods/tested_rows.h"
#include "numeric/half.h"
#include "predicate_fixture.h"
#include "rows/forms.h"
#include "rows/passing_tiles.h"

namespace pgwarp::test
{
namespace
{

using cuda::Context;
using cuda::DeviceArray;
using cuda::rows::PredicateWords;

constexpr std::uint32_t columns = 3;

template <class T>
DeviceArray<T> sent(const std::vector<T>& values, const Context::Lease& lease)
{
    DeviceArray<T> array(shared_context().pool(), values.size(), "test", lease);
    if (!values.empty()) cuda::send(array.data(), values.data(), array.bytes(), lease, "sending");
    return array;
}

struct Found {
    std::vector<RowResult> rows;
    bool proved = false;
};

// Rows on the device with attributes: the number of the row; the number modulo 10; a hash of it, whose codes have no
// table.
class TiledIndex
{
public:
    TiledIndex(Metric metric, std::uint32_t dimensions, std::vector<float> rows, bool halves)
        : metric_(metric), dimensions_(dimensions), count_(static_cast<std::uint32_t>(rows.size() / dimensions))
    {
        if (metric == Metric::cosine) normalise_rows(rows, dimensions);
        rows_ = rows;
        vectors_ = sent(rows, lease_);
        for (std::uint64_t row = 0; row < count_; ++row) {
            codes_.push_back(row);
            codes_.push_back(row % 10);
            codes_.push_back((row + 1) * 0x9E3779B97F4A7C15U);
        }
        device_codes_ = sent(codes_, lease_);
        spans_ = {{0, count_ - 1U}, {0, 9}, {0, ~std::uint64_t{0}}};
        resident_.metric = metric;
        resident_.dimensions = dimensions;
        const auto kind = metric == Metric::l2 ? cuda::ScoreKind::half_l2 : cuda::ScoreKind::half_dot;
        if (halves) {
            make_halves(kind);
        } else {
            resident_.full = vectors_.data();
            scored_ = cuda::make_scored_rows(shared_context().pool(), metric, kind, vectors_.data(), count_, dimensions,
                                             lease_);
        }
    }

    std::uint32_t count() const { return count_; }
    const std::vector<float>& rows() const { return rows_; }
    std::vector<std::uint64_t> dead;

    std::vector<Found> search(const std::vector<float>& queries, std::uint32_t k,
                              const std::vector<PredicateWords>& predicates, std::size_t room = std::size_t{2} << 30)
    {
        std::vector<Found> all;
        while (all.size() < predicates.size()) {
            const auto rest = std::span(predicates).subspan(all.size());
            search_chunk(std::span(queries).subspan(all.size() * dimensions_), k, rest, room, all);
            if (testing::Test::HasFatalFailure()) break;
        }
        return all;
    }
    std::vector<RowResult> reference(const float* query, std::uint32_t k, PredicateWords predicate) const
    {
        FirstRows first(k);
        for (std::uint32_t row = 0; row < count_; ++row) {
            if (bit_is_set(dead, row)) continue;
            if (!predicate.empty() && !passes(predicate, codes_.data() + std::size_t{row} * columns)) continue;
            first.offer({value_of(query, row), row});
        }
        return first.take_sorted();
    }

private:
    void make_halves(cuda::ScoreKind kind)
    {
        const std::uint32_t positions = cuda::rows::whole_groups(count_);
        mean_.assign(dimensions_, 0.0F);
        for (std::uint32_t d = 0; metric_ == Metric::l2 && d < dimensions_; ++d) mean_[d] = rows_[d] / 4;
        float largest = 0;
        for (std::size_t i = 0; i < rows_.size(); ++i)
            largest = std::max(largest, std::fabs(rows_[i] - mean_[i % dimensions_]));
        scale_ = cuda::rows::power_of_two(largest, cuda::rows::half_exponent);
        device_mean_ = sent(mean_, lease_);
        halves_ = DeviceArray<__half>(shared_context().pool(), std::size_t{positions} * dimensions_, "test", lease_);
        cuda::check(cudaMemsetAsync(halves_.data(), 0xff, halves_.bytes(), lease_), "filling");
        cuda::rows::encode_halves(vectors_.data(), nullptr, count_, device_mean_.data(), scale_, dimensions_,
                                  dimensions_, halves_.data(), lease_);
        std::vector<half_bits> halves(rows_.size());
        cuda::read_back(halves.data(), halves_.data(), halves.size() * sizeof(half_bits), lease_, "reading");
        for (std::size_t i = 0; i < halves.size(); ++i)
            rows_[i] = float_of_half(halves[i]) * (1.0F / scale_) + mean_[i % dimensions_];
        error_ = 0.01F / scale_;
        resident_.stride = dimensions_;
        resident_.positions = positions;
        resident_.half = {halves_.data(), device_mean_.data(), scale_, error_};
        scored_ = cuda::make_scored_halves(
            shared_context().pool(), kind,
            {halves_.data(), device_mean_.data(), scale_, count_, positions, dimensions_}, lease_);
    }

    double value_of(const float* query, std::uint32_t row) const
    {
        const float* vector = rows_.data() + std::size_t{row} * dimensions_;
        if (resident_.full != nullptr) {
            const double distance = canonical_distance(metric_, query, vector, dimensions_);
            return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
        }
        if (metric_ == Metric::l2)
            return lower_bound(metric_, canonical_distance(metric_, query, vector, dimensions_), error_, 0);
        const double product = -canonical_dot(query, vector, dimensions_);
        return metric_ == Metric::cosine ? lower_bound(metric_, product + 1, error_, 1)
                                         : lower_bound(metric_, product, error_, canonical_norm(query, dimensions_));
    }

    void search_chunk(std::span<const float> queries, std::uint32_t k, std::span<const PredicateWords> predicates,
                      std::size_t room, std::vector<Found>& all)
    {
        using namespace cuda;
        rows::TiledRows tiled;
        tiled.scored = &scored_;
        tiled.compared.resident = resident_;
        const DeviceArray<std::uint64_t> words = sent(dead, lease_);
        tiled.compared.dead = dead.empty() ? nullptr : words.data();
        const rows::AttributeView attributes{device_codes_.data(), columns, spans_.data()};
        const rows::TilesPlan plan = rows::plan_passing_tiles(tiled, attributes, predicates, k, room, pool_);
        ASSERT_GT(plan.count, 0U);
        ASSERT_LE(plan.count, predicates.size());
        MemoryPool& pool = shared_context().pool();
        const std::vector<float> some(queries.begin(), queries.begin() + std::size_t{plan.count} * dimensions_);
        const DeviceArray<float> given = sent(some, lease_);
        DeviceArray<std::byte> workspace(pool, plan.workspace, "test", lease_);
        // What a search does not write is found.
        check(cudaMemsetAsync(workspace.data(), 0xff, workspace.bytes(), lease_), "filling");
        PinnedArray<std::byte> host(plan.host_workspace);
        DeviceArray<double> values(pool, std::size_t{plan.count} * k, "test", lease_);
        DeviceArray<std::uint32_t> numbers(pool, std::size_t{plan.count} * k, "test", lease_);
        DeviceArray<std::uint32_t> found(pool, plan.count, "test", lease_);
        check(cudaMemsetAsync(values.data(), 0, values.bytes(), lease_), "clearing");
        check(cudaMemsetAsync(numbers.data(), 0, numbers.bytes(), lease_), "clearing");
        Chunk chunk;
        chunk.queries = given.data();
        chunk.workspace = workspace.data();
        chunk.host_workspace = host.data();
        chunk.answers = {values.data(), numbers.data(), found.data()};
        chunk.stream = lease_;
        rows::enqueue_passing_tiles(shared_context(), tiled, plan, chunk, pool_);
        std::vector<double> value(values.size());
        std::vector<std::uint32_t> number(numbers.size());
        std::vector<std::uint32_t> counts(plan.count);
        read_back(value.data(), values.data(), values.bytes(), lease_, "reading");
        read_back(number.data(), numbers.data(), numbers.bytes(), lease_, "reading");
        read_back(counts.data(), found.data(), found.bytes(), lease_, "reading");
        for (std::size_t q = 0; q < plan.count; ++q) {
            Found own;
            own.proved = counts[q] != no_answer;
            for (std::size_t i = 0; own.proved && i < std::min(counts[q], k); ++i)
                own.rows.push_back({value[q * k + i], number[q * k + i]});
            all.push_back(std::move(own));
        }
    }

    Metric metric_;
    std::uint32_t dimensions_;
    std::uint32_t count_;
    std::vector<float> rows_;  // as their values are computed
    std::vector<std::uint64_t> codes_;
    std::vector<cuda::rows::CodeSpan> spans_;
    std::vector<float> mean_;
    float scale_ = 1;
    float error_ = 0;
    ThreadPool pool_{2};
    Context::Lease lease_{shared_context().lease(cuda::Priority::search)};
    DeviceArray<float> vectors_;
    DeviceArray<float> device_mean_;
    DeviceArray<__half> halves_;
    DeviceArray<std::uint64_t> device_codes_;
    cuda::rows::ResidentRows resident_;
    cuda::ScoredRows scored_;
};

// Predicates that none, one, some or all rows pass, with and without tables.
std::vector<Predicate> of_all_kinds(std::uint64_t rows)
{
    const std::uint64_t half = ~std::uint64_t{0} / 2;
    return {Predicate().where(0, {}),
            Predicate().where(0, rows / 2, rows / 2),
            Predicate().where(0, rows - 1, ~std::uint64_t{0}),
            Predicate(),
            Predicate().where(1, 0, 9),
            Predicate().where(1, 3, 3),
            Predicate().where(1, {{0, 1}, {4, 4}, {8, 9}}),
            Predicate().where(2, 0, half),
            Predicate().where(0, rows / 3, rows).where(1, 2, 7).where(2, half / 2, 2 * half),
            Predicate().where(2, {{0, half / 8}, {half / 4, half / 3}, {half, half + half / 2}}),
            Predicate().where(1, {}),
            Predicate().where(2, 1, 1)};
}

// Movable alone: the words of the predicates stay where they are.
struct Asked {
    Asked() = default;
    Asked(Asked&&) = default;
    std::vector<Predicate> kept;
    std::vector<float> queries;
    std::vector<PredicateWords> predicates;
};

// Query i has predicate i modulo their number.
Asked ask(std::vector<Predicate> predicates, std::uint32_t dimensions, std::size_t count, unsigned seed)
{
    Asked asked;
    asked.kept = std::move(predicates);
    asked.queries = random_rows(count, dimensions, seed);
    for (std::size_t q = 0; q < count; ++q) asked.predicates.push_back(asked.kept[q % asked.kept.size()]);
    return asked;
}

// judged: every so many queries are compared with the reference. Returns the queries without a proof.
std::size_t expect_right(TiledIndex& index, const Asked& asked, std::uint32_t dimensions, std::uint32_t k,
                         std::size_t judged = 1, std::size_t room = std::size_t{2} << 30)
{
    const auto found = index.search(asked.queries, k, asked.predicates, room);
    EXPECT_EQ(found.size(), asked.predicates.size());
    std::size_t unproved = 0;
    std::size_t wrong = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        unproved += found[q].proved ? 0 : 1;
        if (!found[q].proved || q % judged != 0) continue;
        const auto right = index.reference(asked.queries.data() + q * dimensions, k, asked.predicates[q]);
        bool same = right.size() == found[q].rows.size();
        for (std::size_t i = 0; same && i < right.size(); ++i)
            same = right[i].row == found[q].rows[i].row && right[i].distance == found[q].rows[i].distance;
        if (same || ++wrong > 3) continue;
        ADD_FAILURE() << "query " << q << ": " << found[q].rows.size() << " rows, not the " << right.size()
                      << " of the reference; the first is "
                      << (found[q].rows.empty() ? -1.0 : static_cast<double>(found[q].rows[0].row)) << ", not "
                      << (right.empty() ? -1.0 : static_cast<double>(right[0].row));
    }
    EXPECT_EQ(wrong, 0U);
    return unproved;
}

std::string name_of(Metric metric, std::uint32_t dimensions, std::size_t rows, std::size_t queries, std::uint32_t k)
{
    return "metric " + std::to_string(static_cast<int>(metric)) + ", " + std::to_string(dimensions) + " dimensions, " +
           std::to_string(rows) + " rows, " + std::to_string(queries) + " queries, k " + std::to_string(k);
}

constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine};

TEST(PassingTiles, FewRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {3U, 64U, 96U}) {
            for (const std::uint32_t count : {1U, 31U, 32U, 33U, 127U, 128U, 129U, 1000U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, count), false);
                const auto predicates = of_all_kinds(count);
                for (const std::uint32_t k : {1U, 10U, 100U, 512U}) {
                    const std::uint32_t most = std::min(k, count);
                    SCOPED_TRACE(name_of(metric, dimensions, count, 30, most));
                    EXPECT_EQ(expect_right(index, ask(predicates, dimensions, 30, k), dimensions, most), 0U);
                }
            }
        }
    }
}

TEST(PassingTiles, BatchesOfAnyLength)
{
    constexpr std::uint32_t dimensions = 64;
    TiledIndex index(Metric::l2, dimensions, random_rows(3000, dimensions, 1), false);
    const auto predicates = of_all_kinds(3000);
    for (const std::size_t queries : {1, 2, 5, 63, 64, 65, 128, 255, 256, 257, 300}) {
        SCOPED_TRACE(name_of(Metric::l2, dimensions, 3000, queries, 10));
        EXPECT_EQ(expect_right(index, ask(predicates, dimensions, queries, 7), dimensions, 10), 0U);
    }
}

// Wide rows stream the queries beside them.
TEST(PassingTiles, WideRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {128U, 256U, 300U, 768U, 1536U}) {
            TiledIndex index(metric, dimensions, random_rows(2500, dimensions, 2), false);
            SCOPED_TRACE(name_of(metric, dimensions, 2500, 70, 10));
            EXPECT_EQ(expect_right(index, ask(of_all_kinds(2500), dimensions, 70, 8), dimensions, 10), 0U);
        }
    }
}

// The values are bounds by halves. Positions behind the rows hold NaN.
TEST(PassingTiles, RowsAsHalves)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {64U, 128U, 768U}) {
            for (const std::uint32_t count : {33U, 128U, 2500U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, 3), true);
                for (const std::uint32_t k : {1U, 10U, 100U}) {
                    SCOPED_TRACE(name_of(metric, dimensions, count, 70, k));
                    const std::uint32_t most = std::min(k, count);
                    EXPECT_EQ(expect_right(index, ask(of_all_kinds(count), dimensions, 70, 9), dimensions, most), 0U);
                }
            }
        }
    }
}

TEST(PassingTiles, ManyRows)
{
    constexpr std::uint32_t dimensions = 96;
    constexpr std::uint32_t count = 100000;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 4), false);
    for (const std::uint32_t k : {1U, 10U, 100U, 512U}) {
        SCOPED_TRACE(name_of(Metric::l2, dimensions, count, 300, k));
        EXPECT_EQ(expect_right(index, ask(of_all_kinds(count), dimensions, 300, k), dimensions, k, 11), 0U);
    }
}

// Each query has a predicate of its own, so that there are many groups of them.
TEST(PassingTiles, PredicatesOfTheirOwn)
{
    constexpr std::uint32_t dimensions = 32;
    constexpr std::uint32_t count = 20000;
    TiledIndex index(Metric::inner_product, dimensions, random_rows(count, dimensions, 5), false);
    std::mt19937_64 random(6);
    std::vector<Predicate> own;
    for (std::uint64_t q = 0; q < 300; ++q) {
        Ranges ranges;
        for (std::uint64_t code = random() % 50; code < count; code += 50 + random() % 300)
            ranges.push_back({code, code + random() % 50});
        if (q % 3 == 0) {
            own.push_back(Predicate().where(0, ranges));
        } else if (q % 3 == 1) {
            own.push_back(Predicate().where(1, q % 10, q % 10).where(2, random(), ~std::uint64_t{0}));
        } else {
            own.push_back(Predicate().where(0, q, count - 7 * q));
        }
    }
    EXPECT_EQ(expect_right(index, ask(own, dimensions, 300, 10), dimensions, 10, 3), 0U);
}

TEST(PassingTiles, DeadRows)
{
    constexpr std::uint32_t dimensions = 64;
    for (const std::uint32_t count : {40U, 3000U}) {
        for (const bool halves : {false, true}) {
            TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 11), halves);
            const Asked asked = ask(of_all_kinds(count), dimensions, 70, 12);
            for (const std::uint32_t living : {2U, 7U}) {
                index.dead.assign((count + 63) / 64, ~std::uint64_t{0});
                for (std::uint32_t row = 0; row < count; ++row)
                    if (row % 7 < living) index.dead[row / 64] &= ~(std::uint64_t{1} << row % 64);
                EXPECT_EQ(expect_right(index, asked, dimensions, 10), 0U);
            }
            index.dead.assign((count + 63) / 64, ~std::uint64_t{0});
            for (const Found& found : index.search(asked.queries, 10, asked.predicates)) {
                EXPECT_TRUE(found.proved);
                EXPECT_TRUE(found.rows.empty());
            }
        }
    }
}

// Little memory makes many chunks.
TEST(PassingTiles, LittleRoom)
{
    constexpr std::uint32_t dimensions = 16;
    TiledIndex index(Metric::l2, dimensions, random_rows(5000, dimensions, 13), false);
    const Asked asked = ask(of_all_kinds(5000), dimensions, 700, 14);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 5, 1), 0U);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 5, std::size_t{4} << 20), 0U);
}

// Scores do not tell equal rows apart: such queries have no answer, or the right one.
TEST(PassingTiles, EqualRowsProveNothingFalse)
{
    constexpr std::uint32_t dimensions = 24;
    constexpr std::uint32_t count = 12000;  // in more groups of positions than are compared for any k
    const std::vector<float> some = random_rows(3, dimensions, 15);
    std::vector<float> rows;
    for (std::size_t row = 0; row < count; ++row)
        rows.insert(rows.end(), some.begin() + static_cast<std::ptrdiff_t>(row % 3 * dimensions),
                    some.begin() + static_cast<std::ptrdiff_t>((row % 3 + 1) * dimensions));
    for (const Metric metric : metrics) {
        TiledIndex index(metric, dimensions, rows, false);
        for (const std::uint32_t k : {1U, 10U, 200U}) {
            const std::size_t unproved =
                expect_right(index, ask(of_all_kinds(count), dimensions, 60, 16), dimensions, k);
            EXPECT_GT(unproved, 0U);
            EXPECT_LT(unproved, 60U);
        }
    }
}

// Rows of very different lengths, and queries whose scores may overflow.
TEST(PassingTiles, HugeAndTinyValues)
{
    constexpr std::uint32_t dimensions = 8;
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        for (const float size : {1e-30F, 1e-6F, 1e6F, 1e18F}) {
            SCOPED_TRACE("size " + std::to_string(size));
            std::vector<float> rows = random_rows(2100, dimensions, 17);
            for (std::size_t i = 0; i < rows.size(); ++i)
                rows[i] = std::clamp(rows[i] / 4, -3.0F, 3.0F) * (i / dimensions % 3 == 0 ? 1.0F : size);
            TiledIndex index(metric, dimensions, rows, false);
            Asked asked = ask(of_all_kinds(2100), dimensions, 40, 18);
            for (std::size_t i = 0; i < 8 * dimensions; ++i) asked.queries[i] = rows[i];
            for (std::size_t i = 8 * dimensions; i < 16 * dimensions; ++i) asked.queries[i] *= 1e36F;
            for (std::size_t i = 16 * dimensions; i < 18 * dimensions; ++i) asked.queries[i] = 0;
            for (std::size_t i = 18 * dimensions; i < 20 * dimensions; ++i) asked.queries[i] = 1e-40F;
            expect_right(index, asked, dimensions, 10);
        }
    }
}

// The tile kernel for other devices gives the same answers.
TEST(PassingTiles, WithoutWarpGroups)
{
    constexpr std::uint32_t dimensions = 128;
    TiledIndex index(Metric::l2, dimensions, random_rows(3000, dimensions, 19), false);
    shared_context().limit_shared_bytes(std::size_t{64} << 10);
    const std::size_t unproved = expect_right(index, ask(of_all_kinds(3000), dimensions, 130, 20), dimensions, 10);
    shared_context().limit_shared_bytes(std::size_t{256} << 10);
    EXPECT_EQ(unproved, 0U);
}

// Through the searchers, whose batches are large enough that tiles take less time.
void expect_served(Searcher& searcher, std::uint32_t dimensions, bool own_scores)
{
    constexpr std::size_t count = 20000;
    constexpr std::size_t asked = 6000;
    constexpr std::uint32_t k = 10;
    ThreadPool pool(2);
    std::vector<std::uint64_t> codes;
    for (std::uint64_t row = 0; row < count; ++row) codes.push_back(row * 7919 % 1000);
    std::vector<Predicate> predicates;
    for (std::uint64_t i = 0; i < 500; ++i) predicates.push_back(Predicate().where(0, i % 100, i % 100 + 899));
    std::vector<RowFilter> filters;
    for (std::size_t q = 0; q < asked; ++q)
        filters.push_back({predicates[q % 500], codes.data(), 1, count / 10 * 9, {}});
    const std::vector<float> queries = random_rows(asked, dimensions, 22);
    std::vector<std::uint64_t> dead((count + 63) / 64);
    for (std::size_t row = 0; row < count; row += 3) set_bit(dead, row);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = asked;
    batch.k = k;
    batch.dead = dead;
    batch.filters = filters;
    const std::uint64_t before = searcher.memory_bytes();
    std::vector<std::vector<RowResult>> found;
    dynamic_cast<const TestsAllRows&>(searcher).search_passing(batch, found, pool);
    const std::uint64_t made = searcher.memory_bytes() - before;
    if (own_scores) {
        EXPECT_EQ(made, count * sizeof(std::uint64_t));
    } else {
        EXPECT_GT(made, count * sizeof(std::uint64_t));
    }
    ASSERT_EQ(found.size(), asked);
    for (std::size_t q = 0; q < asked; q += 101) {
        std::vector<std::uint64_t> others = dead;
        for (std::size_t row = 0; row < count; ++row)
            if (!filters[q].passes(row)) set_bit(others, row);
        SearchBatch one;
        one.queries = std::span(queries).subspan(q * dimensions, dimensions);
        one.count = 1;
        one.k = k;
        one.dead = others;
        std::vector<RowResult> right;
        searcher.search_exact(one, -HUGE_VAL, 0, right, pool);
        ASSERT_EQ(found[q].size(), right.size()) << "query " << q;
        for (std::size_t i = 0; i < k; ++i) {
            ASSERT_EQ(found[q][i].row, right[i].row) << "query " << q << " place " << i;
            ASSERT_EQ(found[q][i].distance, right[i].distance) << "query " << q << " place " << i;
        }
    }
}

TEST(PassingTiles, OfTheSearchers)
{
    constexpr std::uint32_t dimensions = 128;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(20000, dimensions, 21);
    for (const int vectors : {0, 1}) {
        SCOPED_TRACE("graph, vectors " + std::to_string(vectors));
        const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", vectors}}), pool);
        const auto searcher = load_graph(index, shared_context(), pool);
        ASSERT_NO_FATAL_FAILURE(expect_served(*searcher, dimensions, false));
    }
    SCOPED_TRACE("exact");
    const Index index(Method::exact, Metric::l2, dimensions, rows, {}, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const auto searcher = cuda::make_exact_searcher(shared_context(), index.shape, arrays);
    index.write_to(*searcher, 100003);
    searcher->finish_load(pool);
    ASSERT_NO_FATAL_FAILURE(expect_served(*searcher, dimensions, true));
}

// Dimensions and numbers of rows that fill no tile, and rows of which many have the same score.
TEST(PassingTiles, OddShapes)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {1U, 2U, 17U, 65U}) {
            for (const std::uint32_t count : {1U, 2U, 95U, 4097U}) {
                TiledIndex index(metric, dimensions, random_rows(count, dimensions, count + 1), false);
                for (const std::size_t queries : {1, 65}) {
                    for (const std::uint32_t k : {1U, 17U, 512U}) {
                        const std::uint32_t most = std::min(k, count);
                        SCOPED_TRACE(name_of(metric, dimensions, count, queries, most));
                        expect_right(index, ask(of_all_kinds(count), dimensions, queries, k), dimensions, most);
                    }
                }
            }
        }
    }
}

TEST(PassingTiles, TheWidestRows)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {2000U, 4000U, 16000U}) {
            TiledIndex index(metric, dimensions, random_rows(300, dimensions, 31), false);
            SCOPED_TRACE(name_of(metric, dimensions, 300, 13, 5));
            EXPECT_EQ(expect_right(index, ask(of_all_kinds(300), dimensions, 13, 32), dimensions, 5), 0U);
        }
    }
}

// Ranges that touch, reach the first and the last code, or lie behind all codes; columns of as many codes as a table
// has, and of one more.
TEST(PassingTiles, RangesAtTheEdges)
{
    constexpr std::uint32_t dimensions = 4;
    constexpr std::uint64_t last = ~std::uint64_t{0};
    for (const std::uint32_t count : {16384U, 16385U}) {
        TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 33), false);
        std::vector<Predicate> own;
        for (std::uint32_t column = 0; column < columns; ++column) {
            own.push_back(Predicate().where(column, 0, 0));
            own.push_back(Predicate().where(column, last, last));
            own.push_back(Predicate().where(column, 0, last));
            own.push_back(Predicate().where(column, {{0, 3}, {4, 6}, {7, 7}}));
            own.push_back(Predicate().where(column, {{0, 0}, {last, last}}));
            own.push_back(Predicate().where(column, {{count - 1, count - 1}, {count, last}}));
            own.push_back(Predicate().where(column, {{last - 1, last - 1}, {last, last}}));
            own.push_back(Predicate().where(column, 1, last - 1));
        }
        own.push_back(Predicate().where(0, {}).where(1, 0, last).where(2, 0, last));
        own.push_back(Predicate().where(0, 0, last).where(1, 0, last).where(2, {}));
        own.push_back(Predicate().where(0, 16383, 16384).where(2, 0, last));
        EXPECT_EQ(expect_right(index, ask(own, dimensions, own.size(), 34), dimensions, 10), 0U);
    }
}

// The numbers of distinct predicates about those of a group, a block of queries and their multiples.
TEST(PassingTiles, NumbersOfPredicates)
{
    constexpr std::uint32_t dimensions = 8;
    constexpr std::uint32_t count = 700;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 35), false);
    for (const std::uint64_t number : {31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 2100}) {
        SCOPED_TRACE(number);
        std::mt19937_64 random(number);
        std::vector<Predicate> own;
        for (std::uint64_t q = 0; q < number; ++q) {
            const std::uint64_t code = random() % count;
            if (q % 4 == 0) own.push_back(Predicate().where(0, code, code + random() % 400));
            if (q % 4 == 1) own.push_back(Predicate().where(1, q % 10, 9).where(2, random(), ~std::uint64_t{0}));
            if (q % 4 == 2)
                own.push_back(Predicate().where(2, {{q, random() / 4}, {~std::uint64_t{0} - random() / 4, ~q}}));
            if (q % 4 == 3) own.push_back(Predicate().where(0, {{q % 50, 60}, {code + 100, code + 300}}));
        }
        EXPECT_EQ(expect_right(index, ask(own, dimensions, number, 36), dimensions, 10), 0U);
    }
}

// Rows that halves cannot tell apart, far from the origin or in the last bits of their elements.
TEST(PassingTiles, NearlyEqualRowsProveNothingFalse)
{
    constexpr std::uint32_t dimensions = 16;
    constexpr std::uint32_t count = 6000;
    for (const Metric metric : metrics) {
        for (const float part : {1e-2F, 1e-4F, 1e-6F}) {
            for (const float offset : {0.0F, 1000.0F}) {
                std::vector<float> rows = random_rows(count, dimensions, 37);
                for (std::size_t i = 0; i < rows.size(); ++i)
                    rows[i] = offset + rows[i % dimensions] + part * rows[i] * static_cast<float>(i % 3);
                for (const bool halves : {false, true}) {
                    if (halves && metric == Metric::cosine) continue;
                    std::vector<float> wide;
                    constexpr std::uint32_t padded = 64;
                    for (std::size_t i = 0; halves && i < std::size_t{count} * padded; ++i)
                        wide.push_back(rows[i / padded * dimensions + i % dimensions]);
                    const std::uint32_t width = halves ? padded : dimensions;
                    TiledIndex index(metric, width, halves ? wide : rows, halves);
                    Asked asked = ask(of_all_kinds(count), width, 36, 38);
                    for (std::size_t i = 0; i < 12 * width; ++i) asked.queries[i] = index.rows()[i + 50 * width];
                    for (std::size_t i = 12 * width; i < 24 * width; ++i) asked.queries[i] += offset;
                    for (const std::uint32_t k : {1U, 10U, 100U}) {
                        SCOPED_TRACE(name_of(metric, width, count, 36, k) + " part " + std::to_string(part));
                        expect_right(index, asked, width, k);
                    }
                }
            }
        }
    }
}

// Sizes at both ends of the range of single precision.
TEST(PassingTiles, SubnormalAndLargestValues)
{
    constexpr std::uint32_t dimensions = 8;
    constexpr std::uint32_t count = 2100;
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        for (const float size : {1e-44F, 1e-39F, 1e-37F, 1e37F, 5e37F}) {
            for (const float asked_size : {1e-44F, 1e-39F, 1.0F, 5e37F}) {
                SCOPED_TRACE(name_of(metric, dimensions, count, 24, 10) + " size " + std::to_string(std::log10(size)) +
                             " asked " + std::to_string(std::log10(asked_size)));
                std::vector<float> rows = random_rows(count, dimensions, 39);
                for (float& element : rows) element = std::clamp(element, -4.0F, 4.0F) * size;
                TiledIndex index(metric, dimensions, rows, false);
                Asked asked = ask(of_all_kinds(count), dimensions, 24, 40);
                for (float& element : asked.queries) element = std::clamp(element, -4.0F, 4.0F) * asked_size;
                expect_right(index, asked, dimensions, 10);
            }
        }
    }
}

TEST(PassingTiles, CosineOfLongAndShortQueries)
{
    constexpr std::uint32_t dimensions = 12;
    constexpr std::uint32_t count = 3000;
    std::vector<float> rows = random_rows(count, dimensions, 41);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= i / dimensions % 2 == 0 ? 1e-12F : 1e12F;
    TiledIndex index(Metric::cosine, dimensions, rows, false);
    for (const float size : {1e-36F, 1e-18F, 1e-9F, 1.0F, 1e9F, 1e18F, 1e37F}) {
        SCOPED_TRACE(std::log10(size));
        Asked asked = ask(of_all_kinds(count), dimensions, 60, 42);
        for (float& element : asked.queries) element = std::clamp(element, -4.0F, 4.0F) * size;
        expect_right(index, asked, dimensions, 10);
    }
}

// More pairs than 32 bits count.
TEST(PassingTiles, ManyPairs)
{
    constexpr std::uint32_t dimensions = 16;
    constexpr std::uint32_t count = 1500000;
    TiledIndex index(Metric::l2, dimensions, random_rows(count, dimensions, 43), false);
    const Asked asked = ask(of_all_kinds(count), dimensions, 6000, 44);
    EXPECT_EQ(expect_right(index, asked, dimensions, 10, 601, std::size_t{8} << 30), 0U);
}

// Several threads search at once, the first of which makes what all read.
TEST(PassingTiles, ThreadsShareASearcher)
{
    constexpr std::uint32_t dimensions = 64;
    constexpr std::size_t count = 20000;
    constexpr std::size_t asked = 6000;
    constexpr std::uint32_t k = 10;
    ThreadPool build_pool(2);
    const std::vector<float> rows = random_rows(count, dimensions, 45);
    std::vector<std::uint64_t> codes;
    for (std::uint64_t row = 0; row < count; ++row) codes.push_back(row * 7919 % 1000);
    for (const int vectors : {0, 1}) {
        const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", vectors}}), build_pool);
        const auto searcher = load_graph(index, shared_context(), build_pool);
        std::vector<std::vector<std::vector<RowResult>>> found(4);
        std::vector<std::vector<float>> queries;
        for (unsigned t = 0; t < found.size(); ++t) queries.push_back(random_rows(asked, dimensions, 46 + t % 2));
        const auto search = [&](std::size_t t) {
            ThreadPool pool(1);
            std::vector<Predicate> predicates;
            for (std::uint64_t i = 0; i < 97; ++i) predicates.push_back(Predicate().where(0, i, i + 899));
            std::vector<RowFilter> filters;
            for (std::size_t q = 0; q < asked; ++q)
                filters.push_back({predicates[q % 97], codes.data(), 1, count / 10 * 9, {}});
            SearchBatch batch;
            batch.queries = queries[t];
            batch.count = asked;
            batch.k = k;
            batch.filters = filters;
            for (int round = 0; round < 3; ++round)
                dynamic_cast<const TestsAllRows&>(*searcher).search_passing(batch, found[t], pool);
        };
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < found.size(); ++t) threads.emplace_back(search, t);
        for (std::thread& thread : threads) thread.join();
        for (std::size_t t = 0; t < found.size(); ++t) {
            ASSERT_EQ(found[t].size(), asked);
            for (std::size_t q = 0; q < asked; ++q) {
                ASSERT_EQ(found[t][q].size(), k);
                for (std::size_t i = 0; i < k; ++i) {
                    const RowResult& one = found[t][q][i];
                    ASSERT_EQ(one.row, found[t % 2][q][i].row) << "thread " << t << " query " << q;
                    const std::uint64_t code = codes[one.row];
                    ASSERT_TRUE(code >= q % 97 && code <= q % 97 + 899) << "thread " << t << " query " << q;
                }
            }
        }
    }
}

}  // namespace
}  // namespace pgwarp::test
