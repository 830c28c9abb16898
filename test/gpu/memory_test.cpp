// Device memory: budgets, relief and placement, with several contexts on one device, and an engine that answers all
// requests although its budget on the device is too small for them.
#include <gtest/gtest.h>

#include "cluster/staging.h"
#include "device/context.h"
#include "device/error.h"
#include "engine_fixture.h"
#include "ivfadc/builder.h"
#include "ivfadc/ivfadc.h"
#include "methods.h"

namespace pgwarp::test
{
namespace
{

using cuda::Context;
using cuda::DeviceArray;

TEST(DeviceMemory, IsCountedByNameAndHeldToTheBudget)
{
    Context context(0, std::uint64_t{64} << 20);
    const Context::Lease stream = context.lease(cuda::Priority::build);
    {
        const DeviceArray<std::byte> one(context.pool(), 40 << 20, "one", stream);
        const DeviceArray<std::byte> two(context.pool(), 20 << 20, "two", stream);
        EXPECT_EQ(context.pool().used(), std::uint64_t{60} << 20);
        EXPECT_EQ(context.pool().used_by_name().at("one"), std::uint64_t{40} << 20);
        EXPECT_EQ(context.pool().room(), std::uint64_t{4} << 20);
        EXPECT_FALSE(context.pool().has_room(5 << 20));
        EXPECT_THROW(DeviceArray<std::byte>(context.pool(), 5 << 20, "three", stream), std::bad_alloc);
    }
    EXPECT_EQ(context.pool().used(), 0U);
}

TEST(DeviceMemory, IsLeftToSearchesByBuilds)
{
    Context context(0, std::uint64_t{64} << 20);
    const Context::Lease stream = context.lease(cuda::Priority::build);
    DeviceArray<std::byte> built;
    {
        const Context::Build build(context);
        EXPECT_EQ(context.pool().room(), std::uint64_t{60} << 20);
        EXPECT_THROW(DeviceArray<std::byte>(context.pool(), 61 << 20, "built", stream), std::bad_alloc);
        built = DeviceArray<std::byte>(context.pool(), 60 << 20, "built", stream);
        EXPECT_EQ(context.pool().room(), 0U);
    }
    EXPECT_EQ(context.pool().room(), std::uint64_t{4} << 20);
    const DeviceArray<std::byte> searched(context.pool(), 4 << 20, "searched", stream);
}

TEST(DeviceMemory, IsFilledOnEveryDevice)
{
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    if (devices < 2) GTEST_SKIP() << "one device only";
    ThreadPool pool(2);
    const std::vector<std::byte> sent(20 << 20, std::byte{7});
    // In turns: memory that is reused for the next copy must belong to the right device.
    for (int turn = 0; turn < 4; ++turn) {
        Context context(turn % devices, 0);
        const Context::Lease stream = context.lease(cuda::Priority::build);
        DeviceArray<std::byte> there(context.pool(), sent.size(), "there", stream);
        std::vector<std::byte> back(sent.size());
        cuda::Staging staging(stream);
        staging.upload(sent.data(), sent.size(), there.data(), pool, nullptr);
        staging.download(there.data(), back.size(), back.data(), pool, nullptr);
        EXPECT_EQ(back, sent);
    }
}

TEST(DeviceMemory, AsksForReliefBeforeItFails)
{
    Context context(0, std::uint64_t{64} << 20);
    const Context::Lease stream = context.lease(cuda::Priority::build);
    DeviceArray<std::byte> idle(context.pool(), 40 << 20, "idle", stream);
    int asked = 0;
    context.pool().set_relief([&](std::uint64_t bytes) {
        ++asked;
        EXPECT_EQ(bytes, std::uint64_t{6} << 20);
        idle = {};
    });
    const DeviceArray<std::byte> wanted(context.pool(), 30 << 20, "wanted", stream);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(context.pool().used(), std::uint64_t{30} << 20);
}

// An allocation beyond the device's memory fails like one beyond the budget, whatever the budget.
TEST(DeviceMemory, OfTheDeviceMayBeShort)
{
    Context context(0, ~std::uint64_t{0});
    const Context::Lease stream = context.lease(cuda::Priority::build);
    EXPECT_THROW(DeviceArray<std::byte>(context.pool(), std::size_t{1} << 42, "all", stream), std::bad_alloc);
    const DeviceArray<std::byte> some(context.pool(), 1 << 20, "some", stream);
    EXPECT_EQ(context.pool().used(), std::uint64_t{1} << 20);
}

// Exhausted host memory does not evict an index from its device.
TEST(DeviceMemory, OfTheHostMayBeShort)
{
    Context context(0, 0);
    const std::uint64_t before = cuda::pinned_bytes();
    const Context::Lease stream = context.lease(cuda::Priority::build);
    try {
        // More than the address space.
        const cuda::PinnedArray<std::byte> all(std::size_t{1} << 48);
        FAIL() << "there is so much";
    } catch (const DeviceOutOfMemory&) {
        FAIL() << "the device has nothing to do with it";
    } catch (const std::bad_alloc&) {
    }
    EXPECT_EQ(cuda::pinned_bytes(), before);
    const DeviceArray<std::byte> some(context.pool(), 1 << 20, "some", stream);
    EXPECT_EQ(context.pool().used(), std::uint64_t{1} << 20);
}

TEST(DeviceMemory, OfTheHostIsReachableOnceLocked)
{
    Context context(0, 0);
    const Context::Lease stream = context.lease(cuda::Priority::build);
    const std::uint64_t before = cuda::pinned_bytes();
    {
        cuda::HostMemory memory(3 << 20);
        for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<std::byte>(i * 7);
        memory.lock();
        EXPECT_EQ(cuda::pinned_bytes(), before + memory.size());
        const DeviceArray<std::byte> copy(context.pool(), memory.size(), "copy", stream);
        std::vector<std::byte> back(memory.size());
        cuda::check(cudaMemcpyAsync(const_cast<std::byte*>(copy.data()), memory.on_device(), memory.size(),
                                    cudaMemcpyDeviceToDevice, stream),
                    "copying");
        cuda::check(cudaMemcpyAsync(back.data(), copy.data(), back.size(), cudaMemcpyDeviceToHost, stream), "copying");
        stream.stream().synchronize();
        EXPECT_EQ(std::memcmp(back.data(), memory.data(), back.size()), 0);
    }
    EXPECT_EQ(cuda::pinned_bytes(), before);
}

TEST(Placement, GoesWhereTheMostRoomIs)
{
    std::vector<std::unique_ptr<Context>> all;
    for (const std::uint64_t megabytes : {100, 300, 200}) all.push_back(std::make_unique<Context>(0, megabytes << 20));
    EXPECT_EQ(&cuda::roomiest(all), all[1].get());
    const Context::Lease stream = all[1]->lease(cuda::Priority::build);
    const DeviceArray<std::byte> taken(all[1]->pool(), 250 << 20, "taken", stream);
    EXPECT_EQ(&cuda::roomiest(all), all[2].get());
    EXPECT_EQ(&cuda::least_busy(all), all[2].get());
    const Context::Build first(*all[2]);
    EXPECT_EQ(&cuda::least_busy(all), all[0].get());
    const Context::Build second(*all[0]);
    EXPECT_EQ(&cuda::least_busy(all), all[1].get());
    EXPECT_THROW(cuda::roomiest({}), std::runtime_error);
}

// A device of the engine with its own contexts, in place of the module's.
class GpuDevice : public Device
{
public:
    explicit GpuDevice(std::initializer_list<std::uint64_t> budgets)
    {
        for (const std::uint64_t budget : budgets) cuda::contexts().push_back(std::make_unique<Context>(0, budget));
    }
    ~GpuDevice() override { cuda::contexts().clear(); }
    const MethodFactory* method(Method method, MirrorDevice on, bool& on_cuda) const override
    {
        on_cuda = on == MirrorDevice::best && (method == Method::ivfadc || method == Method::exact);
        if (!on_cuda) return find_method(method);
        return cuda::find_method(method);
    }
    bool on_cuda() const override { return true; }
    void set_relief(Relief relief) override
    {
        relief_ = std::move(relief);
        for (const auto& context : cuda::contexts()) {
            context->pool().set_relief([this](std::uint64_t bytes) {
                if (relief_) relief_(0, bytes);
            });
        }
    }
    std::vector<PgwarpDeviceMemory> memory() const override
    {
        std::vector<PgwarpDeviceMemory> all;
        for (const auto& context : cuda::contexts())
            all.push_back({0, context->builds(), context->pool().used(), context->pool().budget()});
        return all;
    }

private:
    Relief relief_;
};

MirrorStatus status_of(EngineClient& client, const TestIndex& index, StatusReply* engine = nullptr)
{
    const ClientReply reply = client.call(MessageType::status, {});
    const auto status = reply.as<StatusReply>();
    if (engine != nullptr) *engine = status;
    for (const MirrorStatus& one : reply.array_at<MirrorStatus>(sizeof(StatusReply), status.mirror_count)) {
        if (one.key == index.key) return one;
    }
    return {};
}

// Searches as a backend does: loads an index that is not resident and searches again.
SearchOutcome answer(EngineClient& client, const TestIndex& index, const BuiltIndex& built, std::uint32_t k,
                     std::size_t count, const std::vector<float>& queries)
{
    for (int round = 0; round < 5; ++round) {
        SearchRequest request = search_request(index, k, static_cast<std::uint32_t>(count));
        const SearchOutcome outcome = search(client, request, queries);
        if (outcome.reply.status == SearchStatus::answered) return outcome;
        try {
            load(client, index, built);
        } catch (const EngineError& error) {
            if (error.code != ErrorCode::unknown_mirror) throw;
        }
    }
    throw std::runtime_error("no answer");
}

double recall_of(const TestIndex& index, const SearchOutcome& outcome, const std::vector<float>& queries,
                 std::size_t count, std::size_t k)
{
    std::size_t found = 0;
    for (std::size_t q = 0; q < count; ++q) {
        for (const auto& [distance, row] : brute_force(index, queries.data() + q * index.shape.dimensions, k)) {
            for (std::size_t i = 0; i < k; ++i) found += outcome.results[q * k + i].tid == index.tids[row] ? 1 : 0;
        }
    }
    return static_cast<double>(found) / static_cast<double>(count * k);
}

class SmallBudget : public testing::TestWithParam<std::tuple<Method, std::uint64_t>>
{
};

// For budgets from almost nothing to enough for all, builds and searches are answered by the device or the CPU.
TEST_P(SmallBudget, NobodyNotices)
{
    const auto [method, budget] = GetParam();
    GpuDevice device{budget};
    TestServer server({}, &device);
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(30000, 48, Metric::l2, method);
    const BuiltIndex built = build(client, index);
    ASSERT_EQ(built.reply.rows, index.rows());
    for (const auto& [count, k] : {std::pair<std::size_t, std::uint32_t>{1, 10}, {300, 10}, {2, 20000}}) {
        const auto queries = index.random_rows(count, 77);
        const SearchOutcome outcome = answer(client, index, built, k, count, queries);
        ASSERT_EQ(outcome.counts.size(), count);
        for (const std::uint32_t one : outcome.counts) ASSERT_EQ(one, k);
        if (k == 10) {
            // With ten rows, one more or less is no error.
            const double least = count == 1 ? 0.8 : 0.98;
            EXPECT_GE(recall_of(index, outcome, queries, std::min<std::size_t>(count, 50), 10), least) << count;
        }
        StatusReply engine;
        const MirrorStatus mirror = status_of(client, index, &engine);
        EXPECT_LE(engine.memory_used, engine.memory_allowed);
        EXPECT_EQ(engine.memory_allowed, budget);
        EXPECT_GE(engine.memory_used, mirror.device_bytes);
        std::printf(
            "[ measured ] budget %llu KiB, %zu x k=%u: %s%s, mirror %llu KiB on the device, %llu in all; device used "
            "%llu\n",
            static_cast<unsigned long long>(budget >> 10), count, k, mirror.on_cuda ? "cuda" : "cpu",
            mirror.split ? " split" : "", static_cast<unsigned long long>(mirror.device_bytes >> 10),
            static_cast<unsigned long long>(mirror.bytes >> 10),
            static_cast<unsigned long long>(engine.memory_used >> 10));
    }
}

INSTANTIATE_TEST_SUITE_P(Budgets, SmallBudget,
                         testing::Combine(testing::Values(Method::ivfadc, Method::exact),
                                          testing::Values(std::uint64_t{64} << 10, std::uint64_t{3} << 20,
                                                          std::uint64_t{5} << 20, std::uint64_t{12} << 20,
                                                          std::uint64_t{40} << 20, std::uint64_t{2} << 30)));

// Several GPUs: the second index goes to the other device.
TEST(SeveralDevices, IndexesAreSpreadAndEvicted)
{
    GpuDevice device{std::uint64_t{60} << 20, std::uint64_t{60} << 20};
    EngineOptions options;
    TestServer server(options, &device);
    EngineClient client(server.path());
    std::vector<TestIndex> indexes;
    std::vector<BuiltIndex> built;
    for (std::uint32_t i = 0; i < 2; ++i) {
        indexes.push_back(TestIndex::random(60000, 64, Metric::l2, Method::exact, i + 1));
        indexes[i].key.relation += i;
        built.push_back(build(client, indexes[i]));
        const auto queries = indexes[i].random_rows(1, 5);
        const SearchOutcome outcome = answer(client, indexes[i], built[i], 10, 1, queries);
        EXPECT_EQ(outcome.reply.on_cuda, 1);
        EXPECT_EQ(recall_of(indexes[i], outcome, queries, 1, 10), 1);
    }
    for (const auto& context : cuda::contexts()) {
        EXPECT_GE(context->pool().used_by_name().at("exact vectors"), std::uint64_t{60000} * 64 * 4);
    }
}

}  // namespace
}  // namespace pgwarp::test
