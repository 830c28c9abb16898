// The steps of exact search on the device, each separately: canonical distances, proposals, values of entries, plans of
// wide searches, and the pace of work in a stream.
#include <cuda_fp16.h>

#include <algorithm>

#include "canonical_distances.h"
#include "device/error.h"
#include "device/hang.h"
#include "device/wait.h"
#include "distance/proposals.h"
#include "exact_fixture.h"
#include "passes/entry_values.h"
#include "passes/pace.h"
#include "passes/wide_search.h"

namespace pgwarp::cuda
{
namespace
{

TEST(CanonicalDistances, SameBitsAsTheCpu)
{
    for (const std::uint32_t dimensions : {1U, 3U, 7U, 8U, 9U, 127U, 1536U, 16000U}) {
        const Data data = random_data(50, 20, dimensions, 3.0F, 0.7F);
        const auto stream = device().lease(Priority::search);
        DeviceArray<float> rows(device().pool(), data.rows.size(), "test", stream);
        DeviceArray<float> queries(device().pool(), data.queries.size(), "test", stream);
        std::vector<QueryRow> pairs;
        for (std::uint32_t i = 0; i < 1000; ++i) pairs.push_back({i % 20, i / 20});
        DeviceArray<QueryRow> device_pairs(device().pool(), pairs.size(), "test", stream);
        DeviceArray<double> out(device().pool(), pairs.size(), "test", stream);
        check(cudaMemcpyAsync(rows.data(), data.rows.data(), rows.bytes(), cudaMemcpyDefault, stream), "copy");
        check(cudaMemcpyAsync(queries.data(), data.queries.data(), queries.bytes(), cudaMemcpyDefault, stream), "copy");
        check(cudaMemcpyAsync(device_pairs.data(), pairs.data(), device_pairs.bytes(), cudaMemcpyDefault, stream), "c");
        for (const Metric metric : metrics) {
            std::vector<double> distances(pairs.size());
            canonical_distances(metric, queries.data(), rows.data(), dimensions, device_pairs.data(), pairs.size(),
                                out.data(), stream);
            check(cudaMemcpyAsync(distances.data(), out.data(), out.bytes(), cudaMemcpyDefault, stream), "copy");
            stream.stream().synchronize();
            for (std::size_t i = 0; i < pairs.size(); ++i) {
                const double expected =
                    pgwarp::canonical_distance(metric, data.queries.data() + std::size_t{pairs[i].query} * dimensions,
                                               data.rows.data() + std::size_t{pairs[i].row} * dimensions, dimensions);
                ASSERT_EQ(std::bit_cast<std::uint64_t>(distances[i]), std::bit_cast<std::uint64_t>(expected))
                    << dimensions << " dimensions, metric " << static_cast<int>(metric);
            }
        }
    }
}

TEST(WideSearch, Plans)
{
    for (const std::uint32_t rows : {3000U, 17000U, 100000U, 1000000U, 50000000U}) {
        for (const std::uint32_t k : {513U, 1000U, 10000U, 12000U, 100000U}) {
            for (const std::size_t shared : {std::size_t{64} << 10, std::size_t{227} << 10}) {
                const WidePlan plan = make_wide_plan(round_up(rows, tile_rows), rows, k, shared);
                if (plan.capacity == 0) continue;
                EXPECT_TRUE(std::has_single_bit(plan.capacity));
                EXPECT_LE(std::size_t{plan.capacity} * 12, shared);
                EXPECT_LT(plan.threshold, std::max(1U, plan.sample / maxima_group));
                EXPECT_GE(plan.capacity, std::min(k, rows));
            }
        }
    }
    EXPECT_EQ(make_wide_plan(1000064, 1000000, 10000, 227 << 10).capacity, 16384U);
    EXPECT_EQ(make_wide_plan(1000064, 1000000, 1000, 227 << 10).capacity, 2048U);
}

bool is_busy(cudaStream_t stream)
{
    const bool busy = cudaStreamQuery(stream) == cudaErrorNotReady;
    (void)cudaGetLastError();
    return busy;
}

// The host does not wait for the first step and the steps that fit beside it; after that it waits for the device.
TEST(Pace, WaitsBetweenStepsOfMuchWork)
{
    const auto stream = device().lease(Priority::search);
    Pace pace(stream);
    keep_busy(stream, 1);
    pace.step(2 * paced_elements);
    EXPECT_TRUE(is_busy(stream));
    pace.step(1);
    EXPECT_FALSE(is_busy(stream));
    keep_busy(stream, 1);
    pace.step(paced_elements / 2);
    EXPECT_TRUE(is_busy(stream));
    pace.step(paced_elements);
    EXPECT_FALSE(is_busy(stream));
}

TEST(Pace, PatienceIsBoundedByWhatIsUnderWay)
{
    const double one = paced_operations(1, 1e6, 1000);
    EXPECT_EQ(one, canonical_operations * 1e9);
    EXPECT_EQ(paced_operations(1e5, 1e6, 1000), paced_operations(1e6, 1e6, 1000));
    EXPECT_GE(paced_operations(1e6, 1e8, 1000), canonical_operations * 1e11);
    EXPECT_GT(patience_for(0, 0, one), patience_for(one));
}

template <class T>
DeviceArray<T> copy_of(const std::vector<T>& values, cudaStream_t stream)
{
    DeviceArray<T> copy(device().pool(), values.size(), "test", stream);
    send(copy.data(), values.data(), copy.bytes(), stream, "test");
    return copy;
}

// The entries of two slots, which repeat a few rows.
struct RepeatedEntries {
    static constexpr std::uint32_t dimensions = 16384;
    static constexpr std::uint32_t distinct = 64;
    static constexpr auto in_launch = static_cast<std::uint32_t>(value_launch_elements / dimensions);
    static constexpr std::uint32_t capacity = 2 * in_launch;

    RepeatedEntries()
    {
        proposed.reserve(2 * capacity);
        for (std::uint32_t i = 0; i < 2 * capacity; ++i) proposed.push_back({0, i % distinct});
    }
    // Runs value_entries(), which replaces the counted entries by the keys of their values, and returns keys and rows.
    void make_values(std::vector<std::uint64_t>& keys, std::vector<std::uint32_t>& numbers) const
    {
        const auto stream = device().lease(Priority::search);
        const auto vectors = copy_of(data.rows, stream);
        const auto queries = copy_of(data.queries, stream);
        auto floats = copy_of<const float*>({queries.data(), queries.data() + dimensions}, stream);
        auto counted = copy_of(counts, stream);
        auto entries = copy_of(proposed, stream);
        DeviceArray<std::uint32_t> found(device().pool(), proposed.size(), "test", stream);
        ExactRows rows;
        rows.metric = Metric::l2;
        rows.vectors = vectors.data();
        rows.rows = distinct;
        rows.dimensions = dimensions;
        rows.scored.order = order;
        PreparedQueries prepared;
        prepared.count = static_cast<std::uint32_t>(counts.size());
        prepared.floats = floats.data();
        Proposals proposals;
        proposals.entries = entries.data();
        proposals.counts = counted.data();
        proposals.capacity = capacity;
        value_entries(rows, prepared, proposals, found.data(), stream);
        keys.resize(proposed.size());
        numbers.resize(proposed.size());
        read_back(keys.data(), entries.data(), entries.bytes(), stream, "test");
        read_back(numbers.data(), found.data(), found.bytes(), stream, "test");
    }
    // Keys of positive values are their bits with the sign bit set.
    std::uint64_t key(std::uint32_t slot, std::uint32_t position) const
    {
        const float* row = data.rows.data() + std::size_t{order.row_of(position)} * dimensions;
        const float* query = data.queries.data() + std::size_t{slot} * dimensions;
        return std::bit_cast<std::uint64_t>(pgwarp::canonical_distance(Metric::l2, query, row, dimensions)) | 1ULL
                                                                                                                  << 63;
    }

    const Data data = random_data(distinct, 2, dimensions);
    const RowOrder order = make_row_order(distinct, 1);
    const std::vector<std::uint32_t> counts{capacity - 100, in_launch / 2};
    std::vector<Proposal> proposed;
};

// A slot with more entries than one launch values.
TEST(EntryValues, OfSeveralLaunches)
{
    const RepeatedEntries entries;
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> numbers;
    entries.make_values(keys, numbers);
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        std::vector<std::uint64_t> expected;
        for (std::uint32_t i = 0; i < entries.distinct; ++i) expected.push_back(entries.key(slot, i));
        for (std::uint32_t i = 0; i < entries.capacity; ++i) {
            const std::size_t at = std::size_t{slot} * entries.capacity + i;
            const bool counted = i < entries.counts[slot];
            const auto left_alone = std::bit_cast<std::uint64_t>(entries.proposed[at]);
            ASSERT_EQ(keys[at], counted ? expected[i % entries.distinct] : left_alone) << slot << ' ' << i;
            if (!counted) continue;
            ASSERT_EQ(numbers[at], entries.order.row_of(i % entries.distinct)) << slot << ' ' << i;
        }
    }
}

// The matrix kernels and the streaming kernel propose the same pairs, except at the threshold itself.
TEST(Proposals, PathsAgree)
{
    for (const std::uint32_t dimensions : {20U, 128U, 200U, 512U}) {
        const Data data = random_data(3001, 300, dimensions);
        const auto stream = device().lease(Priority::search);
        DeviceArray<float> rows(device().pool(), data.rows.size(), "test", stream);
        DeviceArray<float> queries(device().pool(), data.queries.size(), "test", stream);
        check(cudaMemcpyAsync(rows.data(), data.rows.data(), rows.bytes(), cudaMemcpyDefault, stream), "copy");
        check(cudaMemcpyAsync(queries.data(), data.queries.data(), queries.bytes(), cudaMemcpyDefault, stream), "copy");
        const ExactRows exact =
            make_exact_rows(device().pool(), Metric::l2, rows.data(), data.count(), dimensions, stream);
        constexpr std::uint32_t slots = 512;
        constexpr std::uint32_t width = 96;
        DeviceArray<__half> halves(device().pool(), std::size_t{slots} * exact.scored.padded_dimensions, "t", stream);
        DeviceArray<const float*> floats(device().pool(), slots, "test", stream);
        DeviceArray<float> factors(device().pool(), slots, "test", stream);
        DeviceArray<QueryBound> bounds(device().pool(), slots, "test", stream);
        DeviceArray<std::uint32_t> usable(device().pool(), slots, "test", stream);
        DeviceArray<float> maxima(device().pool(), slots * width, "test", stream);
        ProposalJob job;
        job.rows = &exact.scored;
        job.penalties = exact.scored.penalties.data();
        job.vectors = rows.data();
        job.queries = {300, slots, halves.data(), floats.data(), factors.data(), bounds.data(), usable.data()};
        prepare_queries(exact.scored, queries.data(), nullptr, 0, job.queries, stream);
        job.range = {0, 3072};
        job.out.maxima = maxima.data();
        job.out.maxima_width = width;
        std::vector<std::vector<float>> found;
        const auto collect = [&](auto path) {
            check(cudaMemsetAsync(maxima.data(), 0xFF, maxima.bytes(), stream), "poison");
            path(device(), job, static_cast<cudaStream_t>(stream));
            std::vector<float> host(300 * width);
            check(cudaMemcpyAsync(host.data(), maxima.data(), host.size() * 4, cudaMemcpyDefault, stream), "copy");
            stream.stream().synchronize();
            // Groups within a tile of 128 rows differ between the kernels.
            for (std::size_t i = 0; i < host.size(); i += 4) std::sort(&host[i], &host[i] + 4);
            found.push_back(host);
        };
        collect(propose_portably);
        collect(propose_by_streaming);
        if (warp_groups_available(device(), exact.scored.padded_dimensions)) collect(propose_by_warp_groups);
        for (std::size_t path = 1; path < found.size(); ++path) {
            double scale = 0;
            for (const float score : found[0]) scale = std::max(scale, std::fabs(double{score}));
            double largest = 0;
            // The largest score of each tile of 128 is the same in any grouping. (Poison is NaN, which `largest` then
            // keeps.)
            for (std::size_t i = 3; i < found[0].size(); i += 4) {
                const double difference = std::fabs(found[0][i] - found[path][i]) / scale;
                largest = difference <= largest ? largest : difference;
            }
            EXPECT_LT(largest, 1e-6) << dimensions << " dimensions, path " << path;
        }
    }
}

}  // namespace
}  // namespace pgwarp::cuda
