// A live server: build, read, load, search; delta, tombstones, continuation.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

TEST(EngineServer, BuildReadLoadSearchEqualsBruteForce)
{
    for (Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
        TestServer server;
        EngineClient client(server.path());
        const TestIndex index = TestIndex::random(3000, 19, metric);
        const BuiltIndex built = build(client, index);
        EXPECT_EQ(built.reply.rows, 3000U);
        EXPECT_EQ(built.reply.calibration.sample, 17U);
        EXPECT_EQ(built.reply.options.get("tested", 0), 1);
        ASSERT_EQ(built.arrays.size(), 3U);
        EXPECT_STREQ(built.arrays[0].name, array_tid_block);
        load(client, index, built);
        const auto queries = index.random_rows(5, 99);
        const SearchOutcome outcome = search(client, search_request(index, 10, 5), queries);
        ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
        EXPECT_EQ(outcome.reply.kind, ResultKind::exact);
        ASSERT_EQ(outcome.counts.size(), 5U);
        for (std::size_t i = 0; i < 5; ++i) {
            // The engine normalised the rows once more: compare with its stored rows.
            TestIndex stored = index;
            std::memcpy(stored.vectors.data(), built.bytes[2].data(), built.bytes[2].size());
            expect_nearest(stored, queries.data() + i * 19, std::span(outcome.results).subspan(i * 10, 10), 10);
        }
        EXPECT_GT(outcome.reply.engine_ns, 0U);
        EXPECT_LE(outcome.reply.queue_ns, outcome.reply.engine_ns);
    }
}

TEST(EngineServer, ServesEveryMethodOfThisBuild)
{
    TestServer server;
    EngineClient client(server.path());
    for (Method method : {Method::exact, Method::ivfadc}) {
        const TestIndex index = TestIndex::random(4000, 24, Metric::l2, method, static_cast<std::uint32_t>(method));
        load(client, index, build(client, index));
        const auto tids = [](std::span<const Result> results) {
            std::vector<std::uint64_t> list;
            for (const Result& result : results)
                list.push_back(std::uint64_t{result.tid.block} << 16 | result.tid.offset);
            std::sort(list.begin(), list.end());
            return list;
        };
        std::size_t found = 0;
        for (std::uint32_t i = 0; i < 20; ++i) {
            const auto query = index.random_rows(1, 500 + i);
            SearchRequest request = search_request(index, 10);
            request.effort = std::numeric_limits<std::int32_t>::max();
            const SearchOutcome outcome = search(client, request, query);
            ASSERT_EQ(outcome.results.size(), 10U);
            std::vector<Result> truth;
            for (const auto& [distance, row] : brute_force(index, query.data(), 10))
                truth.push_back({index.tids[row], distance});
            std::vector<std::uint64_t> common;
            const auto got = tids(outcome.results);
            const auto wanted = tids(truth);
            std::set_intersection(got.begin(), got.end(), wanted.begin(), wanted.end(), std::back_inserter(common));
            found += common.size();
        }
        EXPECT_GE(found, method == Method::exact ? 200U : 190U) << static_cast<int>(method);
    }
}

TEST(EngineServer, RowsComeSortedByTidWhateverTheirOrder)
{
    TestServer server;
    EngineClient owner(server.path());
    EngineClient worker(server.path());
    const TestIndex index = TestIndex::random(2000, 4, Metric::l2);
    const std::uint64_t token = begin_build(owner, index);
    // Two connections, the later rows first.
    for (const std::size_t first : {std::size_t{1000}, std::size_t{0}}) {
        TestIndex half = index;
        half.tids.assign(index.tids.begin() + static_cast<long>(first),
                         index.tids.begin() + static_cast<long>(first) + 1000);
        half.vectors.assign(index.vectors.begin() + static_cast<long>(first * 4),
                            index.vectors.begin() + static_cast<long>(first * 4 + 4000));
        send_rows(first == 0 ? owner : worker, half, token);
    }
    const BuildRequest request{token};
    EXPECT_THROW(worker.call(MessageType::build_run, EngineClient::bytes_of(request)), EngineError);
    const BuiltIndex built =
        read_build(worker, token, owner.call(MessageType::build_run, EngineClient::bytes_of(request)));
    EXPECT_EQ(std::memcmp(built.bytes[2].data(), index.vectors.data(), built.bytes[2].size()), 0);
    const auto* blocks = reinterpret_cast<const std::uint32_t*>(built.bytes[0].data());
    const auto* offsets = reinterpret_cast<const std::uint16_t*>(built.bytes[1].data());
    for (std::size_t i = 0; i < 2000; ++i) {
        ASSERT_EQ(blocks[i], index.tids[i].block);
        ASSERT_EQ(offsets[i], index.tids[i].offset);
    }
    EXPECT_THROW(send_rows(owner, index, token), EngineError);
    EXPECT_THROW(owner.call(MessageType::build_run, EngineClient::bytes_of(request)), EngineError);
    EXPECT_THROW(worker.call(MessageType::build_end, EngineClient::bytes_of(request)), EngineError);
    owner.call(MessageType::build_end, EngineClient::bytes_of(request));
    EXPECT_THROW(owner.call(MessageType::build_end, EngineClient::bytes_of(request)), EngineError);
}

TEST(EngineServer, BuildRefusesWhatNoIndexHolds)
{
    TestServer server;
    EngineClient client(server.path());
    TestIndex index = TestIndex::random(10, 3, Metric::cosine);
    const std::uint64_t token = begin_build(client, index);
    const auto refused = [&](float value) {
        TestIndex bad = index;
        for (int i = 0; i < 3; ++i) bad.vectors[static_cast<std::size_t>(12 + i)] = value;
        try {
            send_rows(client, bad, token);
        } catch (const EngineError& error) {
            return error.code == ErrorCode::bad_request;
        }
        return false;
    };
    EXPECT_TRUE(refused(std::numeric_limits<float>::quiet_NaN()));
    EXPECT_TRUE(refused(std::numeric_limits<float>::infinity()));
    EXPECT_TRUE(refused(0.0F));
    // The build has lost rows: without them it would make another index.
    EXPECT_THROW(client.call(MessageType::build_run, EngineClient::bytes_of(BuildRequest{token})), EngineError);
    const BuildRequest request{begin_build(client, index)};
    send_rows(client, index, request.token);
    EXPECT_EQ(client.call(MessageType::build_run, EngineClient::bytes_of(request)).as<BuildRunReply>().rows, 10U);
}

TEST(EngineServer, DeltaAndTombstones)
{
    for (Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
        TestServer server;
        EngineClient client(server.path());
        const TestIndex base = TestIndex::random(500, 8, metric);
        const BuiltIndex built = build(client, base);
        ASSERT_EQ(begin_load(client, base, built), LoadGrant::granted);
        send_arrays(client, base, built);
        // Two logs; one that doesn't begin at 0.
        send_delta(client, base, 2, 1000, {}, {});
        end_load(client, base);
        const auto more = base.random_rows(400, 7);
        TestIndex all = base;
        std::vector<Tid> tids;
        for (std::uint32_t i = 0; i < 400; ++i) tids.push_back({100000 + i, 1, 0});
        all.vectors.insert(all.vectors.end(), more.begin(), more.end());
        all.tids.insert(all.tids.end(), tids.begin(), tids.end());

        SearchRequest request = search_request(base, 20);
        request.delta_end[0] = 150;
        request.delta_end[2] = 1250;
        const auto query = base.random_rows(1, 3);
        SearchOutcome outcome = search(client, request, query);
        EXPECT_EQ(outcome.reply.status, SearchStatus::need_delta);
        const auto part = [&](std::size_t first, std::size_t count, std::uint32_t log, std::uint64_t position) {
            send_delta(
                client, base, log, position,
                {tids.begin() + static_cast<long>(first), tids.begin() + static_cast<long>(first + count)},
                {more.begin() + static_cast<long>(first * 8), more.begin() + static_cast<long>((first + count) * 8)});
        };
        part(0, 100, 0, 0);
        part(50, 100, 0, 50);  // overlaps: known rows are ignored
        EXPECT_THROW(part(150, 10, 0, 151), EngineError);
        part(150, 250, 2, 1000);
        outcome = search(client, request, query);
        ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
        EXPECT_EQ(outcome.reply.have_delta_end[0], 150U);
        EXPECT_EQ(outcome.reply.have_delta_end[2], 1250U);
        EXPECT_EQ(outcome.reply.kind, ResultKind::exact);
        const auto check = [&](const std::vector<bool>& dead) {
            outcome = search(client, request, query);
            ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
            const auto truth = brute_force(all, query.data(), 20, dead);
            ASSERT_EQ(outcome.results.size(), truth.size());
            for (std::size_t i = 0; i < truth.size(); ++i) {
                if (metric == Metric::cosine) {
                    EXPECT_NEAR(outcome.results[i].distance, truth[i].first, 2e-6);
                    continue;
                }
                EXPECT_EQ(outcome.results[i].tid, all.tids[truth[i].second]);
                EXPECT_EQ(outcome.results[i].distance, truth[i].first);
            }
        };
        check({});

        // The nearest of the rows and of both logs die.
        request.tombstone_version = 4;
        EXPECT_EQ(search(client, request, query).reply.status, SearchStatus::need_tombstones);
        std::vector<bool> dead(all.rows());
        std::vector<std::uint64_t> words((500 + 63) / 64);
        std::array<std::vector<std::uint64_t>, 4> entries;
        for (const auto& [distance, row] : brute_force(all, query.data(), 15)) {
            dead[row] = true;
            if (row < 500) {
                words[row / 64] |= std::uint64_t{1} << (row % 64);
            } else if (row < 650) {
                entries[0].push_back(row - 500);
            } else {
                entries[2].push_back(row - 650 + 1000);
            }
        }
        const auto tombstones = [&](std::uint32_t source, const std::vector<std::uint64_t>& values, bool final) {
            LoadTombstonesRequest piece{};
            piece.key = base.key;
            piece.version = 4;
            piece.source = source;
            piece.count = static_cast<std::uint32_t>(values.size());
            piece.final = final ? 1 : 0;
            client.call(MessageType::load_tombstones, EngineClient::bytes_of(piece),
                        EngineClient::bytes_of_all(values));
        };
        tombstones(0, words, false);
        tombstones(1, entries[0], false);
        EXPECT_EQ(search(client, request, query).reply.status, SearchStatus::need_tombstones)
            << "nothing takes effect early";
        tombstones(3, entries[2], true);
        check(dead);
        EXPECT_EQ(outcome.reply.have_tombstone_version, 4U);
    }
}

TEST(EngineServer, TellsPlacesWhereTheyAreWanted)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex base = TestIndex::random(300, 8, Metric::l2);
    const BuiltIndex built = build(client, base);
    const auto more = base.random_rows(100, 7);
    std::vector<Tid> tids;
    for (std::uint32_t i = 0; i < 100; ++i) tids.push_back({100000 + i, 1, 0});
    ASSERT_EQ(begin_load(client, base, built), LoadGrant::granted);
    send_arrays(client, base, built);
    send_delta(client, base, 2, 1000, tids, more);
    end_load(client, base);
    TestIndex all = base;
    all.vectors.insert(all.vectors.end(), more.begin(), more.end());
    all.tids.insert(all.tids.end(), tids.begin(), tids.end());

    const auto queries = base.random_rows(3, 3);
    SearchRequest request = search_request(base, 50, 3);
    request.delta_end[2] = 1100;
    SearchOutcome outcome = search(client, request, queries);
    ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
    EXPECT_TRUE(outcome.places.empty());
    request.want_places = 1;
    outcome = search(client, request, queries);
    ASSERT_EQ(outcome.places.size(), 150U);
    for (std::size_t i = 0; i < 150; ++i) {
        const std::size_t row = brute_force(all, queries.data() + i / 50 * 8, 50)[i % 50].second;
        const std::uint64_t entry = (std::uint64_t{3} << place_source_shift) + 1000 + row - 300;
        EXPECT_EQ(outcome.places[i], row < 300 ? row : entry);
        EXPECT_EQ(outcome.results[i].tid, all.tids[row]);
    }
    request.mode = SearchMode::continuation;
    request.query_count = 1;
    request.k = 400;
    request.after = {-std::numeric_limits<double>::infinity(), 0};
    outcome = search(client, request, base.random_rows(1, 4));
    ASSERT_EQ(outcome.places.size(), 400U);
    EXPECT_EQ(outcome.places.back(), outcome.reply.last.ordinal);
    request.want_places = 2;
    EXPECT_THROW(search(client, request, base.random_rows(1, 4)), std::runtime_error);
}

TEST(EngineServer, ContinuationOffersEveryRowOnceInOrder)
{
    for (Metric metric : {Metric::l2, Metric::cosine}) {
        TestServer server;
        EngineClient client(server.path());
        TestIndex base = TestIndex::random(300, 4, metric);
        // Many ties, across the rows and the delta.
        for (std::size_t i = 0; i < base.rows(); i += 3)
            std::copy_n(base.vectors.begin(), 4, base.vectors.begin() + static_cast<long>(i * 4));
        load(client, base, build(client, base));
        std::vector<Tid> tids;
        std::vector<float> more;
        for (std::uint32_t i = 0; i < 100; ++i) {
            tids.push_back({50000 + i, 1, 0});
            more.insert(more.end(), base.row(i), base.row(i) + 4);
        }
        send_delta(client, base, 1, 0, tids, more);
        SearchRequest request = search_request(base, 37);
        request.mode = SearchMode::continuation;
        request.after = {-std::numeric_limits<double>::infinity(), 0};
        const auto query = base.random_rows(1, 3);
        std::vector<std::pair<std::uint32_t, std::uint16_t>> seen;
        double last = -std::numeric_limits<double>::infinity();
        while (true) {
            const SearchOutcome outcome = search(client, request, query);
            ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
            if (outcome.results.empty()) break;
            for (const Result& result : outcome.results) {
                EXPECT_GE(result.distance, last);
                last = result.distance;
                seen.emplace_back(result.tid.block, result.tid.offset);
            }
            EXPECT_EQ(outcome.reply.last.distance, last);
            request.after = outcome.reply.last;
        }
        EXPECT_EQ(seen.size(), 400U);
        std::sort(seen.begin(), seen.end());
        EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    }
}

TEST(EngineServer, ABatchedSearchEndsAtItsOwnLastResult)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(300, 4, Metric::l2);
    load(client, index, build(client, index));
    constexpr std::size_t together = 8;
    const auto queries = index.random_rows(together, 3);
    const SearchRequest request = search_request(index, 10);
    std::size_t batched = 0;
    // Requests that arrive together are answered together.
    for (int round = 0; round < 200 && batched == 0; ++round) {
        std::vector<std::byte> frames;
        const auto append = [&](std::span<const std::byte> bytes) {
            frames.insert(frames.end(), bytes.begin(), bytes.end());
        };
        for (std::size_t i = 0; i < together; ++i) {
            MessageHeader header{};
            header.magic = protocol_magic;
            header.type = static_cast<std::uint16_t>(MessageType::search);
            header.payload_bytes = sizeof(request) + 4 * sizeof(float);
            header.request_id = 1000 + i;
            append(EngineClient::bytes_of(header));
            append(EngineClient::bytes_of(request));
            append(std::as_bytes(std::span(queries).subspan(i * 4, 4)));
        }
        client.send_raw(frames);
        for (std::size_t i = 0; i < together; ++i) {
            const SearchOutcome outcome = decode_outcome(client.receive());
            ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
            ASSERT_EQ(outcome.results.size(), 10U);
            EXPECT_EQ(outcome.reply.last.distance, outcome.results.back().distance);
            EXPECT_EQ(index.tids[outcome.reply.last.ordinal], outcome.results.back().tid);
            if (outcome.reply.batch_width > 1) ++batched;
        }
    }
    EXPECT_GT(batched, 0U);
}

TEST(EngineServer, RefusesSearchesThatMakeNoSense)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(5000, 4, Metric::l2);
    load(client, index, build(client, index));
    const auto code = [&](SearchRequest request, std::vector<float> queries) {
        try {
            search(client, request, queries);
        } catch (const EngineError& error) {
            return static_cast<int>(error.code);
        }
        return 0;
    };
    const int bad = static_cast<int>(ErrorCode::bad_request);
    EXPECT_EQ(code(search_request(index, 0), std::vector<float>(4)), bad);
    EXPECT_EQ(code(search_request(index, max_k + 1), std::vector<float>(4)), bad);
    EXPECT_EQ(code(search_request(index, 1), std::vector<float>(4, std::numeric_limits<float>::quiet_NaN())), bad);
    SearchRequest other = search_request(index, 1);
    other.dimensions = 5;
    EXPECT_EQ(code(other, std::vector<float>(5)), bad);
    EXPECT_EQ(code(search_request(index, 5000, 50), std::vector<float>(200)), bad) << "no reply holds that";
    EXPECT_EQ(code(search_request(index, max_k, 1), std::vector<float>(4)), 0) << "more than there are rows is fine";
#ifndef PGWARP_FAULTS
    SearchRequest fault = search_request(index, 1);
    fault.fault = static_cast<std::uint16_t>(Fault::crash);
    EXPECT_EQ(code(fault, std::vector<float>(4)), bad);
#endif
    EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).results.size(), 3U);
}

TEST(EngineServer, EmptyIndex)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(0, 4, Metric::l2);
    load(client, index, build(client, index));
    EXPECT_TRUE(search(client, search_request(index, 3), std::vector<float>(4)).results.empty());
    send_delta(client, index, 0, 0, {{7, 7, 0}}, {1, 2, 3, 4});
    const SearchOutcome outcome = search(client, search_request(index, 3), std::vector<float>(4));
    ASSERT_EQ(outcome.results.size(), 1U);
    EXPECT_EQ(outcome.results[0].tid.block, 7U);
}

TEST(EngineServer, SomeRequestsAreNotAnswered)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(10, 4, Metric::l2);
    load(client, index, build(client, index));
    const auto post = [&](std::uint64_t first, Tid tid) {
        const LoadDeltaRequest request{index.key, first, 0, 1};
        const std::vector<float> row{90, 90, 90, 90};
        client.want_replies(false);
        client.send(MessageType::load_delta, EngineClient::bytes_of(request), EngineClient::bytes_of(tid),
                    EngineClient::bytes_of_all(row));
        client.want_replies(true);
    };
    post(0, {7, 7, 0});
    post(5, {8, 8, 0});  // after a gap: refused, without a reply too
    const SearchOutcome outcome = search(client, search_request(index, 1), std::vector<float>(4, 90));
    ASSERT_EQ(outcome.results.size(), 1U);
    EXPECT_EQ(outcome.results[0].tid.block, 7U);
    EXPECT_EQ(outcome.reply.have_delta_end[0], 1U);
}

}  // namespace
}  // namespace pgwarp
