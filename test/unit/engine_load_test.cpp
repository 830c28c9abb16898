// Loads of mirrors: the loader is chosen, other searches wait, and another client takes over when the loader goes away.
#include <gtest/gtest.h>

#include <thread>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

TEST(EngineLoad, SixtyFourSessionsLoadEachByteOnce)
{
    TestServer server;
    const TestIndex index = TestIndex::random(2000, 16, Metric::l2);
    EngineClient first(server.path());
    const BuiltIndex built = build(first, index);
    test_method_state().bytes_written = 0;
    std::atomic<int> loaders{0};
    std::atomic<int> answered{0};
    std::vector<std::thread> sessions;
    for (int i = 0; i < 64; ++i) {
        sessions.emplace_back([&, i] {
            EngineClient client(server.path());
            const auto query = index.random_rows(1, static_cast<std::uint32_t>(i));
            SearchOutcome outcome = search(client, search_request(index, 5), query);
            while (outcome.reply.status == SearchStatus::need_load) {
                if (begin_load(client, index, built) == LoadGrant::granted) {
                    ++loaders;
                    send_arrays(client, index, built);
                    end_load(client, index);
                }
                outcome = search(client, search_request(index, 5), query);
            }
            if (outcome.reply.status == SearchStatus::answered && outcome.results.size() == 5) ++answered;
        });
    }
    for (auto& session : sessions) session.join();
    EXPECT_EQ(loaders, 1);
    EXPECT_EQ(answered, 64);
    EXPECT_EQ(test_method_state().bytes_written, index.vectors.size() * sizeof(float));
}

TEST(EngineLoad, WaitersTakeOverWhenTheLoaderDies)
{
    TestServer server;
    const TestIndex index = TestIndex::random(1000, 4, Metric::l2);
    EngineClient builder(server.path());
    const BuiltIndex built = build(builder, index);
    auto loader = std::make_unique<EngineClient>(server.path());
    ASSERT_EQ(begin_load(*loader, index, built), LoadGrant::granted);
    send_arrays(*loader, index, built);

    EngineClient searching(server.path());
    const std::vector<float> query(4);
    const std::uint64_t parked_search = searching.send(
        MessageType::search, EngineClient::bytes_of(search_request(index, 3)), EngineClient::bytes_of_all(query));
    std::atomic<int> granted{0};
    std::atomic<int> loaded{0};
    std::vector<std::thread> others;
    for (int i = 0; i < 4; ++i) {
        others.emplace_back([&] {
            EngineClient client(server.path());
            const LoadGrant grant = begin_load(client, index, built);
            if (grant == LoadGrant::granted) {
                ++granted;
                send_arrays(client, index, built);
                end_load(client, index);
            }
            if (grant == LoadGrant::already_loaded) ++loaded;
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(granted, 0);
    loader.reset();
    for (auto& other : others) other.join();
    EXPECT_EQ(granted, 1);
    EXPECT_EQ(loaded, 3);
    // The parked search is told to load, or answered if the load was done by then.
    const SearchStatus status = decode_outcome(searching.wait(parked_search)).reply.status;
    EXPECT_TRUE(status == SearchStatus::need_load || status == SearchStatus::answered);
    EXPECT_EQ(search(searching, search_request(index, 3), query).reply.status, SearchStatus::answered);
}

TEST(EngineLoad, APreparedGenerationIsPublishedAtTheEndOnly)
{
    TestServer server;
    EngineClient merger(server.path());
    EngineClient searcher(server.path());
    const TestIndex present = TestIndex::random(3000, 8, Metric::l2);
    load(merger, present, build(merger, present));
    TestIndex next = present;
    next.key.generation++;
    const BuiltIndex built = build(merger, next);
    const auto prepare = [&] {
        merger.call(MessageType::load_prepare, EngineClient::bytes_of(MirrorRequest{next.key}));
    };
    const auto query = present.random_rows(1, 3);
    const auto status = [&](const TestIndex& index) {
        return search(searcher, search_request(index, 3), query).reply.status;
    };
    ASSERT_EQ(begin_load(merger, next, built, 0, LoadRole::ahead), LoadGrant::granted);
    EXPECT_THROW(prepare(), EngineError) << "arrays are missing";
    send_arrays(merger, next, built);
    prepare();
    prepare();
    EXPECT_EQ(status(present), SearchStatus::answered) << "it isn't replaced yet";
    EXPECT_EQ(status(next), SearchStatus::still_loading);
    end_load(merger, next);
    const SearchOutcome outcome = search(searcher, search_request(next, 3), query);
    ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
    EXPECT_EQ(outcome.results[0].tid, next.tids[brute_force(next, query.data(), 1)[0].second]);
    EXPECT_EQ(status(present), SearchStatus::need_load);
    EXPECT_THROW(prepare(), EngineError) << "nobody loads it";
}

TEST(EngineLoad, WaitsEnd)
{
    TestServer server;
    const TestIndex index = TestIndex::random(10, 4, Metric::l2);
    EngineClient loader(server.path());
    const BuiltIndex built = build(loader, index);
    ASSERT_EQ(begin_load(loader, index, built), LoadGrant::granted);
    EngineClient client(server.path());
    SearchRequest request = search_request(index, 3);
    request.load_wait_ms = 30;
    const auto start = Clock::now();
    EXPECT_EQ(search(client, request, std::vector<float>(4)).reply.status, SearchStatus::still_loading);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(30));
    EXPECT_EQ(begin_load(client, index, built, 30), LoadGrant::still_loading);
    request.load_wait_ms = 0;
    EXPECT_EQ(search(client, request, std::vector<float>(4)).reply.status, SearchStatus::still_loading);
}

TEST(EngineLoad, AClaimIsTakenOver)
{
    TestServer server;
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    EngineClient claimer(server.path());
    EngineClient other(server.path());
    EngineClient worker(server.path());
    const BuiltIndex built = build(claimer, index);
    EXPECT_EQ(begin_load(other, index, built, 0, LoadRole::watch), LoadGrant::absent);
    ASSERT_EQ(begin_load(claimer, index, built, 0, LoadRole::claim), LoadGrant::granted);
    EXPECT_EQ(begin_load(other, index, built, 0, LoadRole::claim), LoadGrant::still_loading);
    EXPECT_EQ(begin_load(claimer, index, built, 0, LoadRole::watch), LoadGrant::still_loading);
    EXPECT_THROW(send_arrays(claimer, index, built), EngineError) << "a claim is no load";
    ASSERT_EQ(begin_load(worker, index, built, 0), LoadGrant::granted);
    EXPECT_EQ(begin_load(claimer, index, built, 0), LoadGrant::still_loading) << "it was taken over";
    send_arrays(worker, index, built);
    end_load(worker, index);
    EXPECT_EQ(begin_load(claimer, index, built, 1000, LoadRole::watch), LoadGrant::already_loaded);
}

TEST(EngineLoad, AClaimEndsWithItsConnection)
{
    TestServer server;
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    auto claimer = std::make_unique<EngineClient>(server.path());
    EngineClient watcher(server.path());
    const BuiltIndex built = build(watcher, index);
    ASSERT_EQ(begin_load(*claimer, index, built, 0, LoadRole::claim), LoadGrant::granted);
    std::thread leaving([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        claimer.reset();
    });
    EXPECT_EQ(begin_load(watcher, index, built, 10000, LoadRole::watch), LoadGrant::absent);
    leaving.join();
    // A claim without a taker becomes its own connection's load.
    ASSERT_EQ(begin_load(watcher, index, built, 0, LoadRole::claim), LoadGrant::granted);
    load(watcher, index, built);
    EXPECT_EQ(begin_load(watcher, index, built, 0), LoadGrant::already_loaded);
}

void send_part(EngineClient& client, const TestIndex& index, const BuiltIndex& built, std::uint32_t array,
               std::size_t begin, std::size_t end)
{
    const auto part = std::span<const std::byte>(built.bytes[array]).subspan(begin, end - begin);
    const LoadChunkRequest chunk{index.key, array, no_buffer, 0, begin, part.size()};
    client.call(MessageType::load_chunk, EngineClient::bytes_of(chunk), part);
}

TEST(EngineLoad, OthersJoinALoad)
{
    TestServer server;
    const TestIndex index = TestIndex::random(40000, 4, Metric::l2);  // 640 kB of vectors
    EngineClient leader(server.path());
    EngineClient stranger(server.path());
    const BuiltIndex built = build(leader, index);
    std::vector<std::unique_ptr<EngineClient>> helpers;
    for (int i = 0; i < 4; ++i) helpers.push_back(std::make_unique<EngineClient>(server.path()));
    EXPECT_EQ(begin_load(*helpers[0], index, built, 1000, LoadRole::join), LoadGrant::absent) << "nobody loads it";
    ASSERT_EQ(begin_load(leader, index, built), LoadGrant::granted);
    for (auto& helper : helpers) {
        ASSERT_EQ(begin_load(*helper, index, built, 0, LoadRole::join), LoadGrant::granted);
    }
    EXPECT_EQ(begin_load(*helpers[0], index, built, 0, LoadRole::join), LoadGrant::granted) << "once more is no harm";
    EXPECT_THROW(send_part(*helpers[0], index, built, 2, 0, 16), EngineError) << "not its turn";
    send_part(leader, index, built, 0, 0, built.bytes[0].size());
    send_part(*helpers[0], index, built, 1, 0, built.bytes[1].size());
    EXPECT_THROW(send_part(stranger, index, built, 2, 0, 16), EngineError) << "it has not joined";
    EXPECT_THROW(end_load(*helpers[0], index), EngineError) << "the load is the leader's";
    const std::size_t step = 4096;
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (auto& helper : helpers) {
        threads.emplace_back([&] {
            for (std::size_t at; (at = next.fetch_add(step)) + step < built.bytes[2].size();) {
                send_part(*helper, index, built, 2, at, at + step);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_THROW(send_part(*helpers[1], index, built, 2, 0, step), EngineError) << "sent twice";
    helpers.clear();
    EXPECT_THROW(end_load(leader, index), EngineError) << "the end is missing";
    send_part(leader, index, built, 2, (built.bytes[2].size() - 1) / step * step, built.bytes[2].size());
    end_load(leader, index);
    EXPECT_EQ(begin_load(stranger, index, built, 0, LoadRole::join), LoadGrant::absent) << "it is loaded";
}

TEST(EngineLoad, AJoinedLoadEndsWithItsLeader)
{
    TestServer server;
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    auto leader = std::make_unique<EngineClient>(server.path());
    EngineClient helper(server.path());
    const BuiltIndex built = build(helper, index);
    ASSERT_EQ(begin_load(*leader, index, built), LoadGrant::granted);
    ASSERT_EQ(begin_load(helper, index, built, 0, LoadRole::join), LoadGrant::granted);
    leader.reset();
    ASSERT_EQ(begin_load(helper, index, built, 10000, LoadRole::watch), LoadGrant::absent);
    EXPECT_THROW(send_part(helper, index, built, 0, 0, 4), EngineError);
    load(helper, index, built);
    EXPECT_EQ(begin_load(helper, index, built, 0), LoadGrant::already_loaded);
}

TEST(EngineLoad, WhatTheDeviceHasNoRoomForIsServedByTheCpu)
{
    TestServer server;
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    EngineClient client(server.path());
    const BuiltIndex built = build(client, index);
    server.device().full_gpu = true;
    load(client, index, built);
    const SearchOutcome outcome = search(client, search_request(index, 3), std::vector<float>(4));
    EXPECT_EQ(outcome.reply.status, SearchStatus::answered);
    EXPECT_EQ(outcome.reply.on_cuda, 0);
    EXPECT_EQ(outcome.results.size(), 3U);
}

TEST(EngineLoad, ALoadAheadThatIsRefusedIsRemembered)
{
    TestServer server;
    TestIndex index = TestIndex::random(100, 4, Metric::l2);
    EngineClient client(server.path());
    const BuiltIndex built = build(client, index);
    server.device().full_gpu = true;
    EXPECT_THROW(begin_load(client, index, built, 0, LoadRole::ahead), EngineError);
    EXPECT_TRUE(server.engine().residency.is_too_large(index.key));
    ++index.key.generation;
    EXPECT_EQ(begin_load(client, index, built, 0, LoadRole::ahead), LoadGrant::granted) << "on the CPU";
}

TEST(EngineLoad, SmallIndexesAreLeftToTheCpu)
{
    EngineOptions options;
    options.cpu_values = 400;
    TestServer server(options);
    EngineClient client(server.path());
    TestIndex small = TestIndex::random(100, 4, Metric::l2);
    TestIndex large = TestIndex::random(101, 4, Metric::l2);
    large.key.relation = 8;
    const BuiltIndex small_built = build(client, small);
    const BuiltIndex large_built = build(client, large);
    server.device().full_gpu = true;
    load(client, small, small_built);
    load(client, large, large_built);
    // The GPU had no room for the index.
    EXPECT_FALSE(server.engine().residency.is_too_large(small.key));
    EXPECT_TRUE(server.engine().residency.is_too_large(large.key));
    EXPECT_EQ(search(client, search_request(small, 3), std::vector<float>(4)).results.size(), 3U);
}

TEST(EngineLoad, DevicesHaveMirrorsOfTheirOwn)
{
    TestServer server;
    TestIndex index = TestIndex::random(100, 4, Metric::l2);
    EngineClient client(server.path());
    const BuiltIndex built = build(client, index);
    load(client, index, built);
    const TestIndex best = index;
    index.key.device = MirrorDevice::cpu;
    EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::need_load);
    load(client, index, built);
    EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::answered);
    client.call(MessageType::release, EngineClient::bytes_of(MirrorRequest{index.key}));
    EXPECT_EQ(search(client, search_request(best, 3), std::vector<float>(4)).reply.status, SearchStatus::need_load)
        << "a release is for all devices";
}

TEST(EngineLoad, RefusesWrongLoads)
{
    TestServer server;
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    EngineClient client(server.path());
    EngineClient other(server.path());
    BuiltIndex built = build(client, index);
    EXPECT_THROW(send_arrays(client, index, built), EngineError) << "no load was begun";
    EXPECT_THROW(end_load(client, index), EngineError);
    // Without the rows' addresses.
    BuiltIndex bare = built;
    bare.arrays.erase(bare.arrays.begin());
    EXPECT_THROW(begin_load(client, index, bare), EngineError);
    for (const std::uint64_t rows : {99U, 101U}) {
        BuiltIndex uneven = built;
        ASSERT_STREQ(uneven.arrays[2].name, array_vectors);
        uneven.arrays[2].rows = rows;
        EXPECT_THROW(begin_load(client, index, uneven), EngineError) << rows << " vectors";
    }
    BuiltIndex unknown = built;
    TestIndex strange = index;
    strange.shape.method = static_cast<Method>(5);
    EXPECT_THROW(begin_load(client, strange, unknown), EngineError);
    ASSERT_EQ(begin_load(client, index, built), LoadGrant::granted) << "a failed load is no obstacle";
    EXPECT_THROW(begin_load(client, index, built), EngineError);
    EXPECT_THROW(send_arrays(other, index, built), EngineError) << "another one's load";
    EXPECT_THROW(end_load(client, index), EngineError) << "nothing was sent";
    send_arrays(client, index, built);
    EXPECT_THROW(send_arrays(client, index, built), EngineError) << "sent twice";
    LoadChunkRequest past{index.key, 2, no_buffer, 0, index.vectors.size() * 4 - 4, 8};
    const std::vector<std::byte> data(8);
    EXPECT_THROW(client.call(MessageType::load_chunk, EngineClient::bytes_of(past), data), EngineError);
    // Delta rows before the load has ended.
    send_delta(client, index, 0, 0, {{9999, 1, 0}}, std::vector<float>(4));
    end_load(client, index);
    const SearchOutcome outcome = search(client, search_request(index, 1), std::vector<float>(4));
    ASSERT_EQ(outcome.results.size(), 1U);
    EXPECT_EQ(outcome.results[0].tid.block, 9999U);
    EXPECT_THROW(send_delta(client, index, 0, 1, {{1, 1, 0}}, std::vector<float>(5)), EngineError)
        << "wrong dimensions";
    TestIndex gone = index;
    gone.key.generation = 5;
    try {
        send_delta(client, gone, 0, 0, {{1, 1, 0}}, std::vector<float>(4));
        FAIL();
    } catch (const EngineError& error) {
        EXPECT_EQ(error.code, ErrorCode::unknown_mirror);
    }
}

TEST(EngineLoad, ANewerGenerationReplacesTheOlder)
{
    TestServer server;
    EngineClient client(server.path());
    TestIndex index = TestIndex::random(10, 4, Metric::l2);
    const BuiltIndex built = build(client, index);
    load(client, index, built);
    TestIndex other = index;
    other.key.relation = 77;
    load(client, other, built);
    TestIndex newer = index;
    newer.key.generation = 4711;
    load(client, newer, built);
    const std::vector<float> query(4);
    EXPECT_EQ(search(client, search_request(index, 1), query).reply.status, SearchStatus::need_load);
    EXPECT_EQ(search(client, search_request(other, 1), query).reply.status, SearchStatus::answered);
    EXPECT_EQ(search(client, search_request(newer, 1), query).reply.status, SearchStatus::answered);
}

TEST(EngineLoad, MemoryBudget)
{
    EngineOptions options;
    options.memory = 300 << 10;
    TestServer server(options);
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(10000, 4, Metric::l2);  // 160 kB of vectors, 60 kB of addresses
    const BuiltIndex built = build(client, index);
    load(client, index, built);
    TestIndex second = index;
    second.key.relation = 77;
    try {
        load(client, second, built);
        FAIL() << "loaded beyond the budget";
    } catch (const EngineError& error) {
        EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    }
    EXPECT_EQ(search(client, search_request(index, 1), std::vector<float>(4)).reply.status, SearchStatus::answered);
    client.call(MessageType::release, EngineClient::bytes_of(MirrorRequest{index.key}));
    load(client, second, built);
    EXPECT_EQ(search(client, search_request(second, 1), std::vector<float>(4)).reply.status, SearchStatus::answered);
}

std::shared_ptr<Mirror> load_into(Residency& residency, const TestIndex& index)
{
    const std::vector<ArrayShape> arrays = index.arrays();
    std::uint64_t bytes = 0;
    for (const ArrayShape& array : arrays) bytes += array.bytes();
    EXPECT_EQ(residency.begin_load(index.key, 1, LoadRole::load, bytes, {}), Residency::State::absent);
    auto mirror =
        std::make_shared<Mirror>(index.key, index.shape, ParameterList{}, index.rows(), arrays, test_method(), false);
    EXPECT_TRUE(residency.set_load(index.key, 1, mirror));
    residency.publish(index.key, mirror);
    return mirror;
}

TEST(EngineResidency, EvictsTheLeastRecentlyUsed)
{
    Residency residency(100000, std::chrono::milliseconds(50));
    TestIndex index = TestIndex::random(1500, 4, Metric::l2);  // 33 kB each
    for (std::uint32_t i = 0; i < 3; ++i) {
        index.key.relation = i;
        load_into(residency, index);
    }
    index.key.relation = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    residency.find(index.key, {}).mirror->touch();
    index.key.relation = 3;
    load_into(residency, index);
    const auto state = [&](std::uint32_t relation) {
        MirrorKey key = index.key;
        key.relation = relation;
        return residency.find(key, {}).state;
    };
    EXPECT_EQ(state(0), Residency::State::resident);
    EXPECT_EQ(state(1), Residency::State::absent) << "the one used longest ago goes";
    EXPECT_EQ(state(2), Residency::State::resident);
    EXPECT_EQ(state(3), Residency::State::resident);
    EXPECT_LE(residency.memory_used(), 100000U);
}

TEST(EngineResidency, WhatIsUsedStays)
{
    Residency residency(100000, std::chrono::minutes(1));
    TestIndex index = TestIndex::random(1500, 4, Metric::l2);
    for (std::uint32_t i = 0; i < 3; ++i) {
        index.key.relation = i;
        load_into(residency, index);
    }
    index.key.relation = 3;
    EXPECT_THROW(residency.begin_load(index.key, 1, LoadRole::load, 33000, {}), OutOfMemory);
    residency.evict_idle();
    EXPECT_EQ(residency.status().size(), 3U);
}

TEST(EngineResidency, TheNextGenerationTakesThePlaceOfTheOldOne)
{
    Residency residency(100000, std::chrono::minutes(1));
    TestIndex index = TestIndex::random(1500, 4, Metric::l2);
    for (std::uint32_t i = 0; i < 3; ++i) {
        index.key.relation = i;
        load_into(residency, index);
    }
    const MirrorKey old = index.key;
    index.key.generation += 1;
    EXPECT_THROW(residency.begin_load(index.key, 1, LoadRole::ahead, 33000, {}), OutOfMemory)
        << "the old one is in use";
    EXPECT_EQ(residency.find(old, {}).state, Residency::State::resident);
    EXPECT_EQ(residency.begin_load(index.key, 1, LoadRole::load, 33000, {}), Residency::State::absent);
    EXPECT_EQ(residency.find(old, {}).state, Residency::State::absent);
    EXPECT_EQ(residency.status().size(), 3U);
}

TEST(EngineResidency, AnEarlierGenerationThatComesLateDropsNoLaterOne)
{
    Residency residency(0, std::chrono::minutes(1));
    TestIndex index = TestIndex::random(10, 4, Metric::l2);
    const MirrorKey old = index.key;
    Residency elsewhere(0, std::chrono::minutes(1));
    const auto late = load_into(elsewhere, index);
    EXPECT_EQ(residency.begin_load(old, 1, LoadRole::load, 100, {}), Residency::State::absent);
    index.key.generation += 1;
    load_into(residency, index);
    EXPECT_TRUE(residency.set_load(old, 1, late));
    residency.publish(old, late);
    EXPECT_EQ(residency.find(index.key, {}).state, Residency::State::resident);
    EXPECT_EQ(residency.find(old, {}).state, Residency::State::resident);
}

// The first delta rows that a mirror gets must be the log's first entries, unless its loader sends them.
TEST(EngineLoad, OnlyTheLoaderKnowsWhereALogBegins)
{
    TestServer server;
    EngineClient loader(server.path());
    EngineClient other(server.path());
    const TestIndex index = TestIndex::random(50, 4, Metric::l2, Method::exact);
    const BuiltIndex built = build(loader, index);
    ASSERT_EQ(begin_load(loader, index, built), LoadGrant::granted);
    send_arrays(loader, index, built);
    const std::vector<Tid> tids = {{900, 1, 0}, {901, 1, 0}, {902, 1, 0}};
    const std::vector<float> rows(12);
    EXPECT_THROW(send_delta(other, index, 0, 2, {tids[2]}, std::vector<float>(4)), EngineError) << "while it is loaded";
    send_delta(loader, index, 0, 0, tids, rows);
    send_delta(loader, index, 1, 500, {}, {});
    end_load(loader, index);
    SearchRequest request = search_request(index, 3);
    request.delta_end[0] = 3;
    EXPECT_EQ(search(other, request, std::vector<float>(4)).results.front().tid.block, 900U);
    EXPECT_THROW(send_delta(other, index, 2, 7, {tids[0]}, std::vector<float>(4)), EngineError) << "no beginning";
    send_delta(other, index, 2, 0, {tids[0]}, std::vector<float>(4));
    send_delta(other, index, 1, 500, {tids[0]}, std::vector<float>(4));
    EXPECT_THROW(send_delta(other, index, 1, 502, {tids[0]}, std::vector<float>(4)), EngineError) << "a gap";
}

}  // namespace
}  // namespace pgwarp
