// Rows on the device that are searched by matrix tiles alone, the CPU's canonical answers to the same searches, and
// predicates of all kinds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/wait.h"
#include "graph_fixture.h"
#include "methods/bounds.h"
#include "methods/ordered_scan.h"
#include "numeric/half.h"
#include "predicate_fixture.h"
#include "rows/forms.h"
#include "rows/passing_tiles.h"
#include "sent_array.h"

namespace pgwarp::test
{

// Rows on the device with attributes: the number of the row; the number modulo 10; a hash of it, whose codes have no
// table.
class TiledIndex
{
public:
    static constexpr std::uint32_t columns = 3;
    struct Found {
        std::vector<RowResult> rows;
        bool proved = false;
    };

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
                              const std::vector<cuda::rows::PredicateWords>& predicates,
                              std::size_t room = std::size_t{2} << 30)
    {
        std::vector<Found> all;
        while (all.size() < predicates.size()) {
            const auto rest = std::span(predicates).subspan(all.size());
            search_chunk(std::span(queries).subspan(all.size() * dimensions_), k, rest, room, all);
            if (testing::Test::HasFatalFailure()) break;
        }
        return all;
    }
    std::vector<RowResult> reference(const float* query, std::uint32_t k, cuda::rows::PredicateWords predicate) const
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
        halves_ =
            cuda::DeviceArray<__half>(shared_context().pool(), std::size_t{positions} * dimensions_, "test", lease_);
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

    void search_chunk(std::span<const float> queries, std::uint32_t k,
                      std::span<const cuda::rows::PredicateWords> predicates, std::size_t room, std::vector<Found>& all)
    {
        using namespace cuda;
        rows::TiledRows tiled;
        tiled.scored = &scored_;
        tiled.compared.resident = resident_;
        const cuda::DeviceArray<std::uint64_t> words = sent(dead, lease_);
        tiled.compared.dead = dead.empty() ? nullptr : words.data();
        const rows::AttributeView attributes{device_codes_.data(), columns, spans_.data()};
        const rows::TilesPlan plan = rows::plan_passing_tiles(tiled, attributes, predicates, k, room, pool_);
        ASSERT_GT(plan.count, 0U);
        ASSERT_LE(plan.count, predicates.size());
        MemoryPool& pool = shared_context().pool();
        const std::vector<float> some(queries.begin(), queries.begin() + std::size_t{plan.count} * dimensions_);
        const cuda::DeviceArray<float> given = sent(some, lease_);
        cuda::DeviceArray<std::byte> workspace(pool, plan.workspace, "test", lease_);
        // What a search does not write is found.
        check(cudaMemsetAsync(workspace.data(), 0xff, workspace.bytes(), lease_), "filling");
        PinnedArray<std::byte> host(plan.host_workspace);
        cuda::DeviceArray<double> values(pool, std::size_t{plan.count} * k, "test", lease_);
        cuda::DeviceArray<std::uint32_t> numbers(pool, std::size_t{plan.count} * k, "test", lease_);
        cuda::DeviceArray<std::uint32_t> found(pool, plan.count, "test", lease_);
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
    cuda::Context::Lease lease_{shared_context().lease(cuda::Priority::search)};
    cuda::DeviceArray<float> vectors_;
    cuda::DeviceArray<float> device_mean_;
    cuda::DeviceArray<__half> halves_;
    cuda::DeviceArray<std::uint64_t> device_codes_;
    cuda::rows::ResidentRows resident_;
    cuda::ScoredRows scored_;
};

// Predicates that none, one, some or all rows pass, with and without tables.
inline std::vector<Predicate> of_all_kinds(std::uint64_t rows)
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
    std::vector<cuda::rows::PredicateWords> predicates;
};

// Query i has predicate i modulo their number.
inline Asked ask(std::vector<Predicate> predicates, std::uint32_t dimensions, std::size_t count, unsigned seed)
{
    Asked asked;
    asked.kept = std::move(predicates);
    asked.queries = random_rows(count, dimensions, seed);
    for (std::size_t q = 0; q < count; ++q) asked.predicates.push_back(asked.kept[q % asked.kept.size()]);
    return asked;
}

// The queries of ask() that more than one row passes, where predicates are of_all_kinds(). All others have a proof: no
// group but the best has an admitted row.
inline std::size_t passed_by_many(std::size_t queries)
{
    std::size_t many = 0;
    for (std::size_t q = 0; q < queries; ++q) many += q % 12 >= 3 && q % 12 <= 9 ? 1 : 0;
    return many;
}

// judged: every so many queries are compared with the reference. Returns the queries without a proof.
inline std::size_t expect_right(TiledIndex& index, const Asked& asked, std::uint32_t dimensions, std::uint32_t k,
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

inline std::string name_of(Metric metric, std::uint32_t dimensions, std::size_t rows, std::size_t queries,
                           std::uint32_t k)
{
    return "metric " + std::to_string(static_cast<int>(metric)) + ", " + std::to_string(dimensions) + " dimensions, " +
           std::to_string(rows) + " rows, " + std::to_string(queries) + " queries, k " + std::to_string(k);
}

}  // namespace pgwarp::test
