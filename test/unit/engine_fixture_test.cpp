// The fixture of engine tests: the predictable test method, its device, and a backend's steps.
#include "engine_fixture.h"

#include <algorithm>
#include <cstring>

namespace pgwarp
{

void TestMethodState::reset()
{
    slow_ms = 0;
    query_us = 0;
    held = false;
    build_ms = 0;
    cost = 1.0;
    cancelled = 0;
    widest = 0;
    searches = 0;
}

bool eventually(const std::function<bool()>& condition)
{
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (Clock::now() < deadline) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

TestMethodState& test_method_state()
{
    static TestMethodState state;
    return state;
}

namespace
{

void sleep_cancellable(int milliseconds, const CancelToken* cancel)
{
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    while (Clock::now() < end) {
        if (cancel != nullptr && cancel->cancelled()) {
            ++test_method_state().cancelled;
            throw Cancelled();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

class TestBuilder : public Builder
{
public:
    explicit TestBuilder(const IndexShape& shape) : shape_(shape) {}
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool&) override
    {
        const int steps = test_method_state().build_ms / 10;
        for (int i = 0; i < steps; ++i) {
            progress.report("testing", static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(steps));
            sleep_cancellable(10, progress.cancel);
        }
        vectors_ = rows.vectors();
    }
    std::vector<ArrayShape> arrays() const override
    {
        ArrayShape array{};
        std::strcpy(array.name, "vectors");
        array.type = ArrayType::f32;
        array.rows = vectors_.size() / shape_.dimensions;
        array.width = shape_.dimensions;
        return {array};
    }
    void read(const std::string&, std::uint64_t offset, std::span<std::byte> out) const override
    {
        std::memcpy(out.data(), std::as_bytes(vectors_).data() + offset, out.size());
    }
    Calibration calibration() const override
    {
        Calibration calibration;
        calibration.sample = 17;
        return calibration;
    }
    ParameterList effective_options() const override
    {
        ParameterList list;
        list.set("tested", 1);
        return list;
    }

private:
    IndexShape shape_;
    std::span<const float> vectors_;
};

class TestSearcher : public Searcher
{
public:
    TestSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays) : shape_(shape)
    {
        if (arrays.size() != 1) throw BadRequest("one array was expected");
        vectors_.resize(arrays[0].rows * arrays[0].width);
        ++test_method_state().searchers;
    }
    ~TestSearcher() override { --test_method_state().searchers; }
    void write(const std::string&, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        std::memcpy(reinterpret_cast<std::byte*>(vectors_.data()) + offset, bytes.data(), bytes.size());
        test_method_state().bytes_written += bytes.size();
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return vectors_.size() * sizeof(float); }
    ResultKind result_kind() const override { return ResultKind::exact; }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool&) const override
    {
        TestMethodState& state = test_method_state();
        ++state.searches;
        if (batch.count > state.widest) state.widest = batch.count;
        sleep_cancellable(state.slow_ms, batch.cancel);
        while (state.held) sleep_cancellable(1, batch.cancel);
        const int query_us = state.query_us * (batch.k == state.long_k ? 1000 : 1);
        std::this_thread::sleep_for(std::chrono::microseconds(query_us * static_cast<int>(batch.count)));
        for (std::size_t i = 0; i < batch.count; ++i) {
            after(batch, i, -std::numeric_limits<double>::infinity(), 0, results[i]);
        }
    }
    void search_exact(const SearchBatch& batch, double distance, std::uint32_t row, std::vector<RowResult>& results,
                      ThreadPool&) const override
    {
        after(batch, 0, distance, row, results);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        const TestMethodState& state = test_method_state();
        return state.cost * (batch.k == state.long_k ? 1000 : 1);
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override { return batch.settings; }

private:
    void after(const SearchBatch& batch, std::size_t query, double distance, std::uint32_t row,
               std::vector<RowResult>& out) const
    {
        const std::size_t dimensions = shape_.dimensions;
        out.clear();
        for (std::uint32_t i = 0; i < vectors_.size() / dimensions; ++i) {
            if (bit_is_set(batch.dead, i)) continue;
            const double own =
                canonical_distance(static_cast<Metric>(shape_.metric), batch.queries.data() + query * dimensions,
                                   vectors_.data() + i * dimensions, dimensions);
            if (own > distance || (own == distance && i > row)) out.push_back({own, i});
        }
        std::sort(out.begin(), out.end(), [](const RowResult& a, const RowResult& b) {
            return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
        });
        if (out.size() > batch.k) out.resize(batch.k);
    }

    IndexShape shape_;
    std::vector<float> vectors_;
};

}  // namespace

const MethodFactory& test_method()
{
    static const MethodFactory method{Method::graph,
                                      [](const IndexShape& shape, const ParameterList&) -> std::unique_ptr<Builder> {
                                          return std::make_unique<TestBuilder>(shape);
                                      },
                                      [](const IndexShape& shape, const ParameterList&,
                                         std::span<const ArrayShape> arrays) -> std::unique_ptr<Searcher> {
                                          return std::make_unique<TestSearcher>(shape, arrays);
                                      }};
    return method;
}

const MethodFactory* TestDevice::method(Method method, MirrorDevice on, bool& on_cuda) const
{
    static const MethodFactory full = {
        Method::graph,
        [](const IndexShape&, const ParameterList&) -> std::unique_ptr<Builder> { throw std::bad_alloc(); },
        [](const IndexShape&, const ParameterList&, std::span<const ArrayShape>) -> std::unique_ptr<Searcher> {
            throw std::bad_alloc();
        }};
    on_cuda = full_gpu && on == MirrorDevice::best;
    if (on_cuda) return &full;
    return method == Method::graph ? &test_method() : find_method(method);
}

TestServer::TestServer(EngineOptions options, Device* device)
{
    set_log_sink([](LogLevel, const std::string&) {});
    std::string folder = "/tmp/pgwarp-test-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = folder;
    path_ = folder + "/socket";
    options.socket = path_;
    if (options.threads == 0) options.threads = 2;
    server_ = std::make_unique<Server>(options, device != nullptr ? *device : device_);
    thread_ = std::thread([this] { server_->run(-1); });
}

TestServer::~TestServer()
{
    server_->stop("test is over");
    join();
    server_.reset();
    std::filesystem::remove_all(folder_);
    set_log_sink({});
}

void TestServer::join()
{
    if (thread_.joinable()) thread_.join();
}

TestIndex TestIndex::random(std::size_t rows, std::uint32_t dimensions, Metric metric, Method method,
                            std::uint32_t seed)
{
    TestIndex index;
    index.shape.method = method;
    index.shape.element = ElementType::float32;
    index.shape.metric = static_cast<std::uint8_t>(metric);
    index.shape.dimensions = dimensions;
    index.key = {1, 2, 3, -1, 1000 + seed, MirrorDevice::best, 0};
    index.vectors = index.random_rows(rows, seed);
    for (std::size_t i = 0; i < rows; ++i)
        index.tids.push_back({static_cast<std::uint32_t>(i / 10), static_cast<std::uint16_t>(1 + i % 10), 0});
    return index;
}

std::vector<ArrayShape> TestIndex::arrays() const
{
    return {make_array_shape(array_tid_block, ArrayType::u32, rows(), 1),
            make_array_shape(array_tid_offset, ArrayType::u16, rows(), 1),
            make_array_shape(array_vectors, ArrayType::f32, rows(), shape.dimensions)};
}

std::vector<float> TestIndex::random_rows(std::size_t count, std::uint32_t seed) const
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count * shape.dimensions);
    for (float& value : values) value = normal(random);
    if (static_cast<Metric>(shape.metric) != Metric::cosine) return values;
    for (std::size_t at = 0; at < values.size(); at += shape.dimensions) {
        const double norm = canonical_norm(values.data() + at, shape.dimensions);
        for (std::size_t i = 0; i < shape.dimensions; ++i) values[at + i] = static_cast<float>(values[at + i] / norm);
    }
    return values;
}

std::uint64_t begin_build(EngineClient& client, const TestIndex& index)
{
    BuildBeginRequest request{};
    request.shape = index.shape;
    request.options = index.options;
    request.expected_rows = index.rows();
    return client.call(MessageType::build_begin, EngineClient::bytes_of(request)).as<BuildBeginReply>().token;
}

void send_rows(EngineClient& client, const TestIndex& index, std::uint64_t token)
{
    const std::size_t step =
        std::max<std::size_t>(1, (1U << 20) / (index.shape.dimensions * sizeof(float) + sizeof(Tid)));
    for (std::size_t first = 0; first < index.rows(); first += step) {
        const std::size_t count = std::min(step, index.rows() - first);
        BuildRowsRequest request{token, static_cast<std::uint32_t>(count), no_buffer, 0, 0};
        client.call(
            MessageType::build_rows, EngineClient::bytes_of(request),
            std::as_bytes(std::span(index.tids).subspan(first, count)),
            std::as_bytes(
                std::span(index.vectors).subspan(first * index.shape.dimensions, count * index.shape.dimensions)));
    }
}

BuiltIndex read_build(EngineClient& client, std::uint64_t token, const ClientReply& run)
{
    BuiltIndex built;
    built.reply = run.as<BuildRunReply>();
    built.arrays = run.array_at<ArrayShape>(sizeof(BuildRunReply), built.reply.array_count);
    for (std::uint32_t i = 0; i < built.arrays.size(); ++i) {
        std::vector<std::byte> bytes;
        const std::uint64_t total = built.arrays[i].bytes();
        while (bytes.size() < total) {
            BuildReadRequest request{
                token, i, no_buffer, 0, bytes.size(), std::min<std::uint64_t>(1U << 20, total - bytes.size())};
            const ClientReply part = client.call(MessageType::build_read, EngineClient::bytes_of(request));
            if (part.payload.size() != request.length) throw std::runtime_error("short read of a build");
            bytes.insert(bytes.end(), part.payload.begin(), part.payload.end());
        }
        built.bytes.push_back(std::move(bytes));
    }
    return built;
}

BuiltIndex build(EngineClient& client, const TestIndex& index)
{
    const BuildRequest token{begin_build(client, index)};
    send_rows(client, index, token.token);
    BuiltIndex built =
        read_build(client, token.token, client.call(MessageType::build_run, EngineClient::bytes_of(token)));
    client.call(MessageType::build_end, EngineClient::bytes_of(token));
    return built;
}

LoadGrant begin_load(EngineClient& client, const TestIndex& index, const BuiltIndex& built, std::uint32_t wait_ms,
                     LoadRole role)
{
    LoadBeginRequest request{};
    request.role = role;
    request.key = index.key;
    request.shape = index.shape;
    request.options = built.reply.options;
    request.rows = built.reply.rows;
    request.array_count = static_cast<std::uint32_t>(built.arrays.size());
    request.wait_ms = wait_ms;
    return client
        .call(MessageType::load_begin, EngineClient::bytes_of(request), EngineClient::bytes_of_all(built.arrays))
        .as<LoadBeginReply>()
        .grant;
}

void send_arrays(EngineClient& client, const TestIndex& index, const BuiltIndex& built)
{
    for (std::uint32_t i = 0; i < built.arrays.size(); ++i) {
        const auto all = std::span<const std::byte>(built.bytes[i]);
        for (std::size_t at = 0; at < all.size(); at += 1U << 20) {
            const auto part = all.subspan(at, std::min<std::size_t>(1U << 20, all.size() - at));
            LoadChunkRequest chunk{index.key, i, no_buffer, 0, at, part.size()};
            client.call(MessageType::load_chunk, EngineClient::bytes_of(chunk), part);
        }
    }
}

void end_load(EngineClient& client, const TestIndex& index)
{
    client.call(MessageType::load_end, EngineClient::bytes_of(MirrorRequest{index.key}));
}

void load(EngineClient& client, const TestIndex& index, const BuiltIndex& built)
{
    if (begin_load(client, index, built) != LoadGrant::granted) return;
    send_arrays(client, index, built);
    end_load(client, index);
}

void send_delta(EngineClient& client, const TestIndex& index, std::uint32_t log, std::uint64_t first,
                const std::vector<Tid>& tids, const std::vector<float>& vectors)
{
    LoadDeltaRequest request{index.key, first, log, static_cast<std::uint32_t>(tids.size())};
    client.call(MessageType::load_delta, EngineClient::bytes_of(request), EngineClient::bytes_of_all(tids),
                EngineClient::bytes_of_all(vectors));
}

SearchRequest search_request(const TestIndex& index, std::uint32_t k, std::uint32_t count)
{
    SearchRequest request{};
    request.key = index.key;
    request.k = k;
    request.query_count = count;
    request.dimensions = index.shape.dimensions;
    request.load_wait_ms = 10000;
    return request;
}

SearchOutcome decode_outcome(const ClientReply& reply)
{
    SearchOutcome outcome{reply.as<SearchReply>(), {}, {}, {}};
    if (outcome.reply.status != SearchStatus::answered) return outcome;
    outcome.counts = reply.array_at<std::uint32_t>(sizeof(SearchReply), outcome.reply.query_count);
    std::size_t results = 0;
    for (std::uint32_t count : outcome.counts) results += count;
    const std::size_t results_at = sizeof(SearchReply) + (outcome.counts.size() * 4 + 7) / 8 * 8;
    outcome.results = reply.array_at<Result>(results_at, results);
    if (outcome.reply.has_places != 0) {
        outcome.places = reply.array_at<std::uint64_t>(results_at + results * sizeof(Result), results);
    }
    return outcome;
}

SearchOutcome search(EngineClient& client, const SearchRequest& request, const std::vector<float>& queries)
{
    return decode_outcome(
        client.call(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(queries)));
}

std::vector<std::pair<double, std::size_t>> brute_force(const TestIndex& index, const float* query, std::size_t k,
                                                        const std::vector<bool>& dead)
{
    std::vector<std::pair<double, std::size_t>> all;
    for (std::size_t i = 0; i < index.rows(); ++i) {
        if (i < dead.size() && dead[i]) continue;
        all.emplace_back(
            canonical_distance(static_cast<Metric>(index.shape.metric), query, index.row(i), index.shape.dimensions),
            i);
    }
    std::sort(all.begin(), all.end());
    if (all.size() > k) all.resize(k);
    return all;
}

}  // namespace pgwarp
