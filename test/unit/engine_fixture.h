// A live server in this process on a socket of its own, with a method that is easy to predict, and helpers that build,
// load and search as a backend does.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "engine/server/log.h"
#include "engine/server/server.h"
#include "engine_client.h"

namespace pgwarp
{

// Counts the test method's calls, and slows it down on demand.
struct TestMethodState {
    std::atomic<std::uint64_t> bytes_written{0};
    std::atomic<int> searches{0};
    std::atomic<int> searchers{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> slow_ms{0};           // the time for which a search polls its cancel token
    std::atomic<int> query_us{0};          // and the time added for each query
    std::atomic<std::uint32_t> long_k{0};  // a query with this k takes and costs 1,000 times as much
    std::atomic<bool> held{false};         // a search also waits while this is set
    std::atomic<int> build_ms{0};          // the time of a build
    std::atomic<double> cost{1.0};         // result of search_cost()
    std::atomic<std::size_t> widest{0};    // queries of the widest batch

    // Searches and builds are quick and counted from 0 again.
    void reset();
};
TestMethodState& test_method_state();

// Waits for the condition, for a minute at most, and returns whether it came true.
bool eventually(const std::function<bool()>& condition);

// Brute force by canonical distance; served as Method::graph, which this engine doesn't have otherwise.
const MethodFactory& test_method();

// Serves everything as the CPU, unless it is told to be a GPU without memory.
class TestDevice : public Device
{
public:
    const MethodFactory* method(Method method, MirrorDevice on, bool& on_cuda) const override;
    std::atomic<bool> full_gpu{false};
};

class TestServer
{
public:
    // device: serves instead of the test device; outlives the server.
    explicit TestServer(EngineOptions options = {}, Device* device = nullptr);
    ~TestServer();
    const std::string& path() const { return path_; }
    Server& server() { return *server_; }
    Engine& engine() { return server_->engine(); }
    TestDevice& device() { return device_; }
    // Waits until run() has returned.
    void join();

private:
    std::filesystem::path folder_;
    std::string path_;
    TestDevice device_;
    std::unique_ptr<Server> server_;
    std::thread thread_;
};

struct TestIndex {
    IndexShape shape{};
    ParameterList options;
    MirrorKey key{};
    std::vector<Tid> tids;
    std::vector<float> vectors;
    std::size_t rows() const { return tids.size(); }

    static TestIndex random(std::size_t rows, std::uint32_t dimensions, Metric metric, Method method = Method::graph,
                            std::uint32_t seed = 1);
    const float* row(std::size_t i) const { return vectors.data() + i * shape.dimensions; }
    std::vector<float> random_rows(std::size_t count, std::uint32_t seed) const;
    // The shapes of addresses and vectors, as `exact` stores them.
    std::vector<ArrayShape> arrays() const;
};

struct BuiltIndex {
    BuildRunReply reply;
    std::vector<ArrayShape> arrays;
    std::vector<std::vector<std::byte>> bytes;
};

// Steps as a backend takes them. All throw EngineError where the engine refuses.
std::uint64_t begin_build(EngineClient& client, const TestIndex& index);
void send_rows(EngineClient& client, const TestIndex& index, std::uint64_t token);
BuiltIndex read_build(EngineClient& client, std::uint64_t token, const ClientReply& run);
BuiltIndex build(EngineClient& client, const TestIndex& index);

LoadGrant begin_load(EngineClient& client, const TestIndex& index, const BuiltIndex& built,
                     std::uint32_t wait_ms = 10000, LoadRole role = LoadRole::load);
void send_arrays(EngineClient& client, const TestIndex& index, const BuiltIndex& built);
void end_load(EngineClient& client, const TestIndex& index);
void load(EngineClient& client, const TestIndex& index, const BuiltIndex& built);
void send_delta(EngineClient& client, const TestIndex& index, std::uint32_t log, std::uint64_t first,
                const std::vector<Tid>& tids, const std::vector<float>& vectors);

struct SearchOutcome {
    SearchReply reply;
    std::vector<std::uint32_t> counts;
    std::vector<Result> results;
    std::vector<std::uint64_t> places;
};
SearchRequest search_request(const TestIndex& index, std::uint32_t k, std::uint32_t count = 1);
SearchOutcome search(EngineClient& client, const SearchRequest& request, const std::vector<float>& queries);
SearchOutcome decode_outcome(const ClientReply& reply);

// Nearest rows by float64 brute force, ties by row; rows in `dead` left out.
std::vector<std::pair<double, std::size_t>> brute_force(const TestIndex& index, const float* query, std::size_t k,
                                                        const std::vector<bool>& dead = {});

// Expects the k nearest rows, in order.
inline void expect_nearest(const TestIndex& index, const float* query, std::span<const Result> results, std::size_t k)
{
    const auto truth = brute_force(index, query, k);
    ASSERT_EQ(results.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
        EXPECT_EQ(results[i].tid, index.tids[truth[i].second]) << "result " << i;
        EXPECT_EQ(results[i].distance, truth[i].first) << "result " << i;
    }
}

}  // namespace pgwarp
