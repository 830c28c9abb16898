// Mirrors of indexes that are gone from disk, GPUs without room, and mirrors that are freed without the table's lock.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <future>
#include <set>

#include "engine_fixture.h"
#include "forwarding_searcher.h"

namespace pgwarp
{
namespace
{

using namespace std::chrono_literals;

// A folder that looks like a data directory of PostgreSQL 15.
class DataDirectory
{
public:
    DataDirectory()
    {
        std::string folder = "/tmp/pgwarp-test-XXXXXX";
        if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path = folder;
        write("PG_VERSION", "15\n");
    }
    ~DataDirectory() { std::filesystem::remove_all(path); }
    void write(const std::string& name, const std::string& content) const
    {
        std::filesystem::create_directories((path / name).parent_path());
        std::ofstream(path / name) << content;
    }

    std::filesystem::path path;
};

MirrorKey key_of(std::uint32_t tablespace, std::uint32_t database, std::uint32_t relation, std::int32_t backend = -1)
{
    MirrorKey key{};
    key.tablespace = tablespace;
    key.database = database;
    key.relation = relation;
    key.temp_backend = backend;
    return key;
}

TEST(RelationFiles, AbsentAndEmptyFilesAreGone)
{
    const DataDirectory data;
    data.write("base/5/100", "page");
    data.write("base/5/101", "");
    data.write("base/5/t3_102", "page");
    const RelationFiles files(data.path);
    EXPECT_FALSE(files.is_gone(key_of(1663, 5, 100)));
    EXPECT_TRUE(files.is_gone(key_of(1663, 5, 101))) << "cut to nothing by DROP";
    EXPECT_FALSE(files.is_gone(key_of(1663, 5, 102, 3)));
    EXPECT_TRUE(files.is_gone(key_of(1663, 5, 102))) << "a temporary table has files of its own";
    EXPECT_TRUE(files.is_gone(key_of(1663, 5, 103)));
    EXPECT_TRUE(files.is_gone(key_of(1663, 6, 100))) << "another database";
}

TEST(RelationFiles, TablespacesHaveAFolderForEachVersion)
{
    const DataDirectory data;
    data.write("pg_tblspc/900/PG_15_202209061/5/100", "page");
    data.write("pg_tblspc/900/PG_14_202107181/5/101", "page");
    const RelationFiles files(data.path);
    EXPECT_FALSE(files.is_gone(key_of(900, 5, 100)));
    EXPECT_TRUE(files.is_gone(key_of(900, 5, 101))) << "a file of another version";
    EXPECT_TRUE(files.is_gone(key_of(901, 5, 100))) << "a tablespace that was dropped";
}

TEST(RelationFiles, NothingIsKnownWithoutADataDirectory)
{
    EXPECT_FALSE(RelationFiles("/").is_gone(key_of(1663, 5, 100)));
}

// The test method's searcher, with functions that it calls when it is searched and freed.
struct Behaviour {
    std::function<void()> search = [] {};
    std::function<void()> end = [] {};
};

class ToldSearcher : public test::ForwardingSearcher
{
public:
    ToldSearcher(std::unique_ptr<Searcher> searcher, const Behaviour& behaviour)
        : ForwardingSearcher(std::move(searcher)), behaviour_(behaviour)
    {
    }
    ~ToldSearcher() override { behaviour_.end(); }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        behaviour_.search();
        ForwardingSearcher::search(batch, results, pool);
    }

private:
    const Behaviour& behaviour_;
};

Behaviour told;

const MethodFactory& told_method()
{
    static const MethodFactory method = [] {
        MethodFactory descriptor = test_method();
        descriptor.make_searcher = [](const IndexShape& shape, const ParameterList& options,
                                      std::span<const ArrayShape> arrays) -> std::unique_ptr<Searcher> {
            return std::make_unique<ToldSearcher>(test_method().make_searcher(shape, options, arrays), told);
        };
        return descriptor;
    }();
    return method;
}

constexpr std::uint64_t plenty = std::uint64_t{1} << 40;

class MirrorTable : public testing::Test
{
protected:
    void TearDown() override { told = {}; }

    std::shared_ptr<Mirror> make_mirror(const TestIndex& index, bool on_cuda = false)
    {
        return std::make_shared<Mirror>(index.key, index.shape, ParameterList{}, index.rows(), index.arrays(),
                                        told_method(), on_cuda);
    }
    void publish(Residency& residency, const TestIndex& index, bool on_cuda = false)
    {
        const auto mirror = make_mirror(index, on_cuda);
        ASSERT_EQ(residency.begin_load(index.key, 1, LoadRole::load, mirror->host_bytes(), {}),
                  Residency::State::absent);
        ASSERT_TRUE(residency.set_load(index.key, 1, mirror));
        residency.publish(index.key, mirror);
    }
    static TestIndex index_of(std::uint32_t relation)
    {
        TestIndex index = TestIndex::random(1500, 4, Metric::l2);  // 33 kB
        index.key.relation = relation;
        return index;
    }
};

TEST_F(MirrorTable, MirrorsOfIndexesThatAreGoneMakeRoom)
{
    std::set<std::uint32_t> gone;
    Residency residency(100000, 1min, [&](const MirrorKey& key) { return gone.contains(key.relation); });
    for (std::uint32_t i = 0; i < 3; ++i) publish(residency, index_of(i));
    EXPECT_THROW(residency.begin_load(index_of(3).key, 1, LoadRole::load, 33000, {}), OutOfMemory) << "all are in use";
    gone = {1};
    EXPECT_EQ(residency.begin_load(index_of(3).key, 1, LoadRole::load, 33000, {}), Residency::State::absent);
    EXPECT_FALSE(residency.find_resident(index_of(1).key));
    EXPECT_TRUE(residency.find_resident(index_of(0).key));
    gone = {0, 2};
    residency.drop_gone();
    EXPECT_EQ(residency.status().size(), 1U) << "the load goes on";
}

// The error that an action is refused with, as the sender of a request gets it.
template <typename Action>
ErrorReply refusal_of(const Action& action)
{
    try {
        action();
    } catch (...) {
        return describe_exception();
    }
    return {};
}

TEST_F(MirrorTable, RefusalsSayWhatMemoryIsShort)
{
    constexpr std::uint64_t mib = 1 << 20;
    Residency residency(2 * mib);
    publish(residency, index_of(0));
    const auto load = [&](std::uint64_t bytes) {
        return refusal_of([&] { residency.begin_load(index_of(1).key, 1, LoadRole::load, bytes, {}); });
    };
    const ErrorReply large = load(10 * mib + 1);
    EXPECT_EQ(large.code, ErrorCode::out_of_memory);
    EXPECT_STREQ(large.message, "the index takes 11 MiB of memory, and all indexes may take 2 MiB");
    EXPECT_STREQ(large.hint, "Raise pgwarp.engine_memory. Until then, SET enable_indexscan = off to read the table.");
    EXPECT_TRUE(residency.find_resident(index_of(0).key)) << "no eviction would have helped";

    const ErrorReply crowded = load(2 * mib);
    EXPECT_STREQ(crowded.message, "no memory for 2 MiB: indexes that are in use take 0 MiB of 2 MiB");
    EXPECT_STREQ(crowded.hint, "Raise pgwarp.engine_memory, or release an index with pgwarp_release().");

    ASSERT_EQ(load(mib).code, ErrorCode{});
    EXPECT_STREQ(refusal_of([&] { residency.resize_load(index_of(1).key, 3 * mib); }).message,
                 "the index takes 3 MiB of memory, and all indexes may take 2 MiB");
}

TEST_F(MirrorTable, AnEngineLooksForFilesThatAreGone)
{
    const DataDirectory data;
    EngineOptions options;
    options.data_directory = data.path;
    TestServer server(options);
    EngineClient client(server.path());
    TestIndex index = TestIndex::random(100, 4, Metric::l2);
    index.key = key_of(1663, 5, 100);
    index.key.generation = 1;
    data.write("base/5/100", "page");
    load(client, index, build(client, index));
    std::this_thread::sleep_for(1500ms);
    EXPECT_TRUE(server.engine().residency.find_resident(index.key));
    data.write("base/5/100", "");
    const auto deadline = Clock::now() + 5s;
    while (server.engine().residency.find_resident(index.key) && Clock::now() < deadline)
        std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(server.engine().residency.find_resident(index.key));
}

// Freeing gigabytes takes a while: no request may wait for the table during that time.
TEST_F(MirrorTable, WhatAConnectionWasLoadingIsFreedWithoutTheLock)
{
    Residency residency(0);
    const TestIndex index = index_of(1);
    ASSERT_EQ(residency.begin_load(index.key, 1, LoadRole::load, 1000, {}), Residency::State::absent);
    ASSERT_TRUE(residency.set_load(index.key, 1, make_mirror(index)));
    bool answered = false;
    std::future<std::uint64_t> other;
    told.end = [&] {
        other = std::async(std::launch::async, [&] { return residency.memory_used(); });
        answered = other.wait_for(2s) == std::future_status::ready;
    };
    residency.connection_closed(1);
    EXPECT_TRUE(answered);
}

TEST(GpuRefusals, PausesGrow)
{
    GpuRefusals refusals;
    const MirrorKey key = key_of(1663, 5, 100);
    const auto start = Clock::now();
    EXPECT_FALSE(refusals.holds(key, start));
    refusals.note(key, 1000, 0, start);
    EXPECT_TRUE(refusals.holds(key, start + 59s));
    EXPECT_FALSE(refusals.holds(key, start + 61s));
    EXPECT_TRUE(refusals.due(start + 59s).empty());
    ASSERT_EQ(refusals.due(start + 61s).size(), 1U);
    EXPECT_EQ(refusals.due(start + 61s)[0].least_room, 1125U);
    EXPECT_FALSE(refusals.due(start + 61s)[0].is_old);
    EXPECT_TRUE(refusals.due(start + 2h)[0].is_old);
    refusals.note(key, 1000, 0, start + 61s);
    EXPECT_TRUE(refusals.holds(key, start + 180s)) << "twice as long";
    EXPECT_FALSE(refusals.holds(key, start + 182s));
    refusals.note(key, 1000, 0, start + 3h);
    EXPECT_FALSE(refusals.holds(key, start + 3h + 61s)) << "long ago";
}

TEST(GpuRefusals, WhatWasTooLittleIsTooLittleAgain)
{
    GpuRefusals refusals;
    const MirrorKey key = key_of(1663, 5, 100);
    const auto start = Clock::now();
    const auto least_room = [&] { return refusals.due(start + 1h)[0].least_room; };
    // An index with arrays of 1,000 bytes that takes more than 2,400 bytes of the GPU.
    refusals.note(key, 1000, 2000, start);
    EXPECT_GT(least_room(), 2000U);
    EXPECT_LT(least_room(), 2400U);
    refusals.note(key, 1000, 2400, start + 61s);
    EXPECT_GT(least_room(), 2400U);
    // Another index took nearly all of the memory.
    refusals.forget(key);
    refusals.note(key, 1000, 10, start);
    EXPECT_EQ(least_room(), 1125U);
}

TEST(GpuRefusals, OneWantOfMemoryCountsOnce)
{
    GpuRefusals refusals;
    const MirrorKey key = key_of(1663, 5, 100);
    const auto start = Clock::now();
    for (int i = 0; i < 8; ++i) refusals.note(key, 1000, 0, start + i * 1ms);
    EXPECT_TRUE(refusals.holds(key, start + 59s));
    EXPECT_FALSE(refusals.holds(key, start + 61s));
}

TEST(GpuRefusals, AMergeStartsNothingAnew)
{
    GpuRefusals refusals;
    MirrorKey key = key_of(1663, 5, 100);
    const auto start = Clock::now();
    key.generation = 1;
    refusals.note(key, 1000, 0, start);
    key.generation = 2;
    EXPECT_TRUE(refusals.holds(key, start + 59s));
    refusals.note(key, 1000, 0, start + 61s);
    EXPECT_TRUE(refusals.holds(key, start + 180s)) << "twice as long";
    EXPECT_FALSE(refusals.holds(key_of(1663, 5, 101), start)) << "another index";
    refusals.forget(key);
    key.generation = 1;
    EXPECT_FALSE(refusals.holds(key, start + 180s));
}

TEST_F(MirrorTable, ALaterGenerationReturnsToTheGpu)
{
    Residency residency(0);
    TestIndex index = index_of(1);
    publish(residency, index, true);
    const auto now = Clock::now();
    ASSERT_TRUE(residency.leave_gpu(residency.find_resident(index.key), 0, now));
    publish(residency, index, false);
    ++index.key.generation;
    EXPECT_TRUE(residency.is_too_large(index.key));
    publish(residency, index, false);
    residency.return_to_gpu(plenty, now + 2min);
    EXPECT_FALSE(residency.find_resident(index.key));
}

TEST_F(MirrorTable, AMirrorLeavesTheGpuOnce)
{
    Residency residency(0);
    publish(residency, index_of(1), true);
    const auto mirror = residency.find_resident(index_of(1).key);
    const auto now = Clock::now();
    ASSERT_TRUE(residency.leave_gpu(mirror, 0, now));
    publish(residency, index_of(1), false);
    EXPECT_TRUE(residency.leave_gpu(mirror, 0, now + 61s)) << "a search that began before";
    residency.return_to_gpu(plenty, now + 62s);
    EXPECT_FALSE(residency.find_resident(index_of(1).key)) << "its pause was over";
}

TEST_F(MirrorTable, TheGpuIsAskedAgainWhereItHasRoom)
{
    Residency residency(0);
    publish(residency, index_of(1), true);
    const auto mirror = residency.find_resident(index_of(1).key);
    const auto now = Clock::now();
    ASSERT_TRUE(residency.leave_gpu(mirror, 1000));
    EXPECT_TRUE(residency.is_too_large(index_of(1).key));
    publish(residency, index_of(1), false);
    residency.return_to_gpu(plenty, now);
    EXPECT_TRUE(residency.find_resident(index_of(1).key)) << "not yet";
    residency.return_to_gpu(999, now + 2min);
    EXPECT_TRUE(residency.find_resident(index_of(1).key)) << "no room yet";
    residency.return_to_gpu(plenty, now + 2min);
    EXPECT_FALSE(residency.find_resident(index_of(1).key)) << "to be loaded again";
}

// Serves the test method as a GPU would.
class GpuDevice : public Device
{
public:
    const MethodFactory* method(Method, MirrorDevice on, bool& on_cuda) const override
    {
        on_cuda = on == MirrorDevice::best;
        return &told_method();
    }
};

TEST_F(MirrorTable, OnlyADeviceThatIsShortOfMemoryLosesItsIndex)
{
    GpuDevice device;
    TestServer server({}, &device);
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    const std::vector<float> query(4);
    told.search = [] { throw std::bad_alloc(); };
    EXPECT_THROW(search(client, search_request(index, 3), query), EngineError) << "the host's memory";
    told.search = [] {};
    EXPECT_EQ(search(client, search_request(index, 3), query).reply.on_cuda, 1);
    told.search = [] { throw DeviceOutOfMemory(); };
    EXPECT_EQ(search(client, search_request(index, 3), query).reply.status, SearchStatus::need_load);
    EXPECT_TRUE(server.engine().residency.is_too_large(index.key));
}

}  // namespace
}  // namespace pgwarp
