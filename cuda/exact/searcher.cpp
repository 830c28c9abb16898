#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <new>

#include "device/beside.h"
#include "device/error.h"
#include "device/retry.h"
#include "device/wait.h"
#include "exact/exact.h"
#include "exact/small_search.h"
#include "exact/staging.h"
#include "exact/unit_rows.h"
#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "methods/exact/exact.h"
#include "numeric/distance.h"
#include "passes/dead_rows.h"
#include "passes/pace.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t staging_bytes = std::size_t{8} << 20;

// A point in a stream that the host waits for. Made when it is first set.
class Arrival
{
public:
    Arrival() = default;
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    ~Arrival()
    {
        if (event_ != nullptr) (void)cudaEventDestroy(event_);
    }
    void record(cudaStream_t stream)
    {
        if (event_ == nullptr) check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
        check(cudaEventRecord(event_, stream), "recording an event");
    }
    void wait() const { wait_for(event_, "waiting for results"); }

private:
    cudaEvent_t event_ = nullptr;
};

class DeviceExactSearcher : public Searcher
{
public:
    DeviceExactSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : context_(context),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          in_halves_(keeps_halves(shape)),
          loading_(context.lease(Priority::build)),
          dead_stream_(context.lease(Priority::search))
    {
        const ArrayShape* vectors = find_array(arrays, "vectors");
        if (vectors == nullptr) return;
        require_array(arrays, "vectors", in_halves_ ? ArrayType::f16 : ArrayType::f32, vectors->rows, dimensions_);
        count_ = static_cast<std::uint32_t>(vectors->rows);
        vectors_ = DeviceArray<float>(context.pool(), std::size_t{count_} * dimensions_, "exact vectors", loading_);
        loading_.stream().synchronize();
    }

    void write(const std::string&, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        // Halves become floats on the way.
        const std::size_t growth = in_halves_ ? sizeof(float) / sizeof(half_bits) : 1;
        const std::size_t stored_bytes = vectors_.bytes() / growth;
        if (offset > stored_bytes || bytes.size() > stored_bytes - offset) {
            throw BadRequest("past the end of an array");
        }
        if (in_halves_ && (offset % sizeof(half_bits) != 0 || bytes.size() % sizeof(half_bits) != 0)) {
            throw BadRequest("part of an element");
        }
        const DevicePatience patience(build_patience);
        const Context::Lease stream = context_.lease(Priority::build);
        auto staging = staging_.lease(std::min(bytes.size() * growth, staging_bytes));
        auto* to = reinterpret_cast<std::byte*>(vectors_.data()) + offset * growth;
        const std::size_t step = staging_bytes / growth;
        for (std::size_t done = 0; done < bytes.size(); done += step) {
            const std::size_t piece = std::min(step, bytes.size() - done);
            stage(bytes.subspan(done, piece), staging.data());
            check(cudaMemcpyAsync(to + done * growth, staging.data(), piece * growth, cudaMemcpyHostToDevice, stream),
                  "loading vectors");
            stream.stream().synchronize();
        }
    }

    bool copy_rows(const Searcher& from, std::uint64_t first, std::uint64_t count, std::uint64_t to) override
    {
        const auto* other = dynamic_cast<const DeviceExactSearcher*>(&from);
        if (other == nullptr || &other->context_ != &context_ || other->dimensions_ != dimensions_) return false;
        if (first + count > other->count_ || to + count > count_) throw BadRequest("past the end of an array");
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context_.device()), "choosing the device");
        check(cudaMemcpyAsync(vectors_.data() + to * dimensions_, other->vectors_.data() + first * dimensions_,
                              count * dimensions_ * sizeof(float), cudaMemcpyDeviceToDevice, loading_),
              "copying vectors");
        loading_.stream().synchronize();  // the other may go now
        return true;
    }

    void finish_load(ThreadPool&) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context_.device()), "choosing the device");
        if (in_halves_ && metric_ == Metric::cosine) make_unit_rows(vectors_.data(), count_, dimensions_, loading_);
        rows_ = make_exact_rows(context_.pool(), metric_, vectors_.data(), count_, dimensions_, loading_);
        loading_.stream().synchronize();
    }

    std::uint64_t memory_bytes() const override { return vectors_.bytes() + rows_.scored.bytes(); }
    Residence residence() const override { return {context_.device(), false, memory_bytes()}; }
    ResultKind result_kind() const override
    {
        return metric_ == Metric::cosine ? ResultKind::lower_bound : ResultKind::exact;
    }
    double bound_width(const float*) const override
    {
        return metric_ == Metric::cosine ? pgwarp::bound_width(metric_, 0, 1) : 0;
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        const DevicePatience patience(patience_of(batch.count));
        search_or_give_back(
            batch, [&] { search_queries(batch, results, pool); }, [&] { drop_unused(batch); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        const DevicePatience patience(patience_of(1));
        search_or_give_back(
            batch,
            [&] {
                continue_rows(batch, {after_distance, after_row}, results, pool);
            },
            [&] { drop_unused(batch); });
    }

    double search_cost(const SearchBatch& batch) const override;
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    ExactStatistics statistics() const
    {
        return {queries_.load(std::memory_order_relaxed), filtered_again_.load(std::memory_order_relaxed),
                tied_.load(std::memory_order_relaxed), scanned_.load(std::memory_order_relaxed)};
    }

private:
    // The operands of one request on the device, and the way there and back through pinned memory.
    class Request;
    using Results = std::vector<std::vector<RowResult>>;

    void stage(std::span<const std::byte> stored, std::byte* out) const
    {
        if (!in_halves_) {
            std::memcpy(out, stored.data(), stored.size());
            return;
        }
        from_half(reinterpret_cast<const half_bits*>(stored.data()), stored.size() / sizeof(half_bits),
                  reinterpret_cast<float*>(out));
    }

    std::chrono::milliseconds patience_of(std::size_t queries) const
    {
        constexpr double sorting_cost = 1000;  // of a row among all, in float operations
        const auto asked = static_cast<double>(queries);
        return patience_for(asked * count_ * (2.0 * dimensions_ + sorting_cost), 0,
                            paced_operations(asked, count_, dimensions_));
    }
    // And what was made of dead rows for batches before this one.
    void drop_unused(const SearchBatch& batch) const
    {
        small_.drop_idle();
        staging_.drop_idle();
        dead_.drop_before(batch.dead_version);
    }
    void search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const;
    void continue_rows(const SearchBatch& batch, ScanCursor after, std::vector<RowResult>& results,
                       ThreadPool& pool) const;
    // Null where none is dead.
    OfBitmap<ExactTombstones>::Use dead_rows(const SearchBatch& batch) const
    {
        if (batch.dead.empty()) return nullptr;
        check(cudaSetDevice(context_.device()), "choosing the device");
        return dead_.get(batch.dead_version, [&] {
            constexpr double marking_cost = 100;  // of a row, in float operations
            const DevicePatience patience(
                patience_for(marking_cost * count_, static_cast<double>(batch.dead.size_bytes())));
            return make_tombstones(batch.dead, context_, rows_, dead_stream_);
        });
    }
    // Numbers of the queries that it could not prove.
    std::vector<std::uint32_t> search_few(const SearchBatch& batch, const DeadRows& dead, Results& results) const;
    // Query i's result goes to results[numbers[i]], or [i] without numbers.
    void search_many(const SearchBatch& batch, const DeadRows& dead, const std::uint32_t* numbers, Results& results,
                     ThreadPool& pool) const;
    void search_piece(const SearchBatch& batch, std::size_t first, std::uint32_t width, const DeadRows& dead,
                      const std::uint32_t* numbers, Results& results, ThreadPool& pool) const;
    void search_again(const SearchBatch& batch, const DeadRows& dead, const std::vector<std::uint32_t>& numbers,
                      Results& results, ThreadPool& pool) const;

    Context& context_;
    Metric metric_;
    std::uint32_t dimensions_;
    bool in_halves_;  // what is loaded; resident are floats, for cosine of unit length
    std::uint32_t count_ = 0;
    Context::Lease loading_;      // what is resident is freed in its order
    Context::Lease dead_stream_;  // and in this one's what is made of dead rows: searches wait for it
    DeviceArray<float> vectors_;
    ExactRows rows_;
    mutable OfBitmap<ExactTombstones> dead_;
    mutable StagingPool staging_;
    mutable SmallSearches small_;
    mutable std::atomic<std::uint64_t> queries_{0};
    mutable std::atomic<std::uint64_t> filtered_again_{0};
    mutable std::atomic<std::uint64_t> tied_{0};
    mutable std::atomic<std::uint64_t> scanned_{0};
};

class DeviceExactSearcher::Request
{
public:
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    Request(const DeviceExactSearcher& searcher, const SearchBatch& batch, std::uint32_t count, ThreadPool& pool)
        : stream_(searcher.context_.lease(Priority::search)),
          count_(count),
          k_(std::min(batch.k, searcher.count_)),
          query_bytes_(std::size_t{count} * searcher.dimensions_ * sizeof(float)),
          results_(std::size_t{count} * k_),
          staging_(searcher.staging_.lease(std::max(query_bytes_, results_ * 12 + count * 4))),
          memory_(searcher.context_.pool(), round_up<std::size_t>(query_bytes_, 256) + results_ * 12 + count * 4,
                  "exact search operands", stream_)
    {
        std::byte* at = memory_.data();
        queries_ = reinterpret_cast<float*>(at);
        at += round_up<std::size_t>(query_bytes_, 256);
        answer_.values = reinterpret_cast<double*>(at);
        answer_.rows = reinterpret_cast<std::uint32_t*>(at + results_ * 8);
        answer_.found = answer_.rows + results_;
        answer_.k = k_;
        send(reinterpret_cast<const std::byte*>(batch.queries.data()), pool);
        // Queries that find fewer rows leave places unwritten, which are copied back all the same.
        check(cudaMemsetAsync(answer_.values, 0, results_ * 12 + count_ * 4, stream_), "clearing the answer");
    }

    // A cancelled search may still be reading the staging buffer.
    ~Request() { drain(stream_); }

    // Waits for the answer, which comes in pieces: while one is on its way, the threads hand out the one before, by
    // hand_out(first query, end).
    void receive(ThreadPool& pool, const std::function<void(std::size_t, std::size_t)>& hand_out)
    {
        constexpr std::size_t piece_results = std::size_t{1} << 18;
        const std::size_t pieces = std::clamp<std::size_t>(results_ / piece_results, 1, most_pieces);
        const auto first_of = [&](std::size_t piece) { return piece * count_ / pieces; };
        // By now the queries have left the staging buffer: the search's own work follows them in the stream.
        copy_back(results_ * 12, count_ * sizeof(std::uint32_t));
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::size_t first = first_of(i) * k_;
            const std::size_t results = first_of(i + 1) * k_ - first;
            copy_back(first * sizeof(double), results * sizeof(double));
            copy_back(results_ * sizeof(double) + first * sizeof(std::uint32_t), results * sizeof(std::uint32_t));
            arrived_[i].record(stream_);
        }
        for (std::size_t i = 0; i < pieces; ++i) {
            arrived_[i].wait();
            const std::size_t first = first_of(i);
            pool.parallel_for(first_of(i + 1) - first, 64,
                              [&](std::size_t begin, std::size_t end) { hand_out(first + begin, first + end); });
        }
    }
    void read(std::uint32_t query, std::vector<RowResult>& results) const
    {
        const auto* values = reinterpret_cast<const double*>(staging_.data());
        const auto* rows = reinterpret_cast<const std::uint32_t*>(staging_.data() + results_ * 8);
        const std::uint32_t found = rows[results_ + query];
        results.resize(found);
        const std::size_t first = std::size_t{query} * k_;
        for (std::uint32_t i = 0; i < found; ++i) results[i] = {values[first + i], rows[first + i]};
    }

    const float* queries() const { return queries_; }
    const ExactAnswer& answer() const { return answer_; }
    cudaStream_t stream() const { return stream_; }

private:
    // Bytes of the answer, into the same place of the staging buffer.
    void copy_back(std::size_t offset, std::size_t bytes)
    {
        check(cudaMemcpyAsync(staging_.data() + offset, reinterpret_cast<const std::byte*>(answer_.values) + offset,
                              bytes, cudaMemcpyDeviceToHost, stream_),
              "reading results");
    }
    // In pieces: while one is on its way, the threads put the next into pinned memory. Waking them takes time too.
    void send(const std::byte* from, ThreadPool& pool)
    {
        const std::size_t piece = std::size_t{1} << (pool.threads() > 1 ? 22 : 20);
        for (std::size_t begin = 0; begin < query_bytes_; begin += piece) {
            const std::size_t bytes = std::min(piece, query_bytes_ - begin);
            std::byte* staged = staging_.data() + begin;
            pool.parallel_for(bytes, std::size_t{1} << 17, [&](std::size_t first, std::size_t last) {
                std::memcpy(staged + first, from + begin + first, last - first);
            });
            check(cudaMemcpyAsync(reinterpret_cast<std::byte*>(queries_) + begin, staged, bytes, cudaMemcpyHostToDevice,
                                  stream_),
                  "sending queries");
        }
    }

    static constexpr std::size_t most_pieces = 8;

    Context::Lease stream_;
    Arrival arrived_[most_pieces];
    std::uint32_t count_;
    std::uint32_t k_;
    std::size_t query_bytes_;
    std::size_t results_;
    mutable StagingPool::Lease staging_;
    DeviceArray<std::byte> memory_;
    float* queries_ = nullptr;
    ExactAnswer answer_;
};

// In float operations of the CPU, by which the engine tells what its I/O threads may do themselves: a batch of some
// hundred queries at a time, and nothing that takes the device a millisecond.
double DeviceExactSearcher::search_cost(const SearchBatch& batch) const
{
    constexpr double batched = 8e3;
    constexpr double too_long = 1e7;
    if (std::min(batch.k, count_) > largest_ranked_k) return too_long;
    const double bytes = double{1} * count_ * dimensions_ * (metric_ == Metric::l1 ? sizeof(float) : sizeof(__half));
    return bytes > 4e9 ? too_long : batched;
}

void DeviceExactSearcher::search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    results.resize(batch.count);
    for (auto& result : results) result.clear();
    if (count_ == 0 || batch.k == 0 || batch.count == 0) return;
    const OfBitmap<ExactTombstones>::Use use = dead_rows(batch);
    const DeadRows dead = use != nullptr ? use->view() : DeadRows{};
    if (!SmallSearch::serves(rows_, batch.count, std::min(batch.k, count_))) {
        return search_many(batch, dead, nullptr, results, pool);
    }
    const std::vector<std::uint32_t> unproven = search_few(batch, dead, results);
    queries_.fetch_add(batch.count - unproven.size(), std::memory_order_relaxed);
    if (!unproven.empty()) search_again(batch, dead, unproven, results, pool);
}

std::vector<std::uint32_t> DeviceExactSearcher::search_few(const SearchBatch& batch, const DeadRows& dead,
                                                           Results& results) const
{
    if (batch.cancel != nullptr) batch.cancel->check();
    const auto count = static_cast<std::uint32_t>(batch.count);
    auto small = small_.take(context_);
    const ExactAnswer answer =
        small->search(rows_, batch.queries.data(), count, std::min(batch.k, count_), dead.penalties, batch.meanwhile);
    std::vector<std::uint32_t> unproven;
    for (std::uint32_t query = 0; query < count; ++query) {
        if (answer.found[query] == not_proved) {
            unproven.push_back(query);
            continue;
        }
        results[query].resize(answer.found[query]);
        const std::size_t first = std::size_t{query} * answer.k;
        for (std::uint32_t i = 0; i < answer.found[query]; ++i) {
            results[query][i] = {answer.values[first + i], answer.rows[first + i]};
        }
    }
    small_.give_back(std::move(small));
    return unproven;
}

void DeviceExactSearcher::search_again(const SearchBatch& batch, const DeadRows& dead,
                                       const std::vector<std::uint32_t>& numbers, Results& results,
                                       ThreadPool& pool) const
{
    std::vector<float> queries;
    for (const std::uint32_t number : numbers) {
        const auto query = batch.queries.subspan(std::size_t{number} * dimensions_, dimensions_);
        queries.insert(queries.end(), query.begin(), query.end());
    }
    SearchBatch again = batch;
    again.queries = queries;
    again.count = numbers.size();
    search_many(again, dead, numbers.data(), results, pool);
}

void DeviceExactSearcher::search_many(const SearchBatch& batch, const DeadRows& dead, const std::uint32_t* numbers,
                                      Results& results, ThreadPool& pool) const
{
    // Large answers in pieces: some 128 MiB of results at a time, and less where memory is short.
    std::size_t most = std::max<std::size_t>(1, (std::size_t{10} << 20) / std::min(batch.k, count_));
    for (std::size_t first = 0; first < batch.count;) {
        const auto width = static_cast<std::uint32_t>(std::min(most, batch.count - first));
        const MeanwhileWatch meanwhile(batch);
        try {
            search_piece(batch, first, width, dead, numbers, results, pool);
        } catch (const std::bad_alloc&) {
            if (width == 1 || meanwhile.has_begun()) throw;
            drop_unused(batch);
            most = width / 2;
            continue;
        }
        first += width;
    }
}

void DeviceExactSearcher::search_piece(const SearchBatch& batch, std::size_t first, std::uint32_t width,
                                       const DeadRows& dead, const std::uint32_t* numbers, Results& results,
                                       ThreadPool& pool) const
{
    SearchBatch piece = batch;
    piece.queries = batch.queries.subspan(first * dimensions_, std::size_t{width} * dimensions_);
    Request request(*this, piece, width, pool);
    ExactStatistics statistics;
    search_exactly(context_, rows_, request.queries(), width, dead, request.answer(), statistics, batch.cancel,
                   request.stream());
    run_beside(request.stream(), batch.meanwhile);
    request.receive(pool, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t query = first + i;
            request.read(static_cast<std::uint32_t>(i), results[numbers != nullptr ? numbers[query] : query]);
        }
    });
    queries_.fetch_add(statistics.queries, std::memory_order_relaxed);
    filtered_again_.fetch_add(statistics.filtered_again, std::memory_order_relaxed);
    tied_.fetch_add(statistics.tied, std::memory_order_relaxed);
    scanned_.fetch_add(statistics.scanned, std::memory_order_relaxed);
}

void DeviceExactSearcher::continue_rows(const SearchBatch& batch, ScanCursor after, std::vector<RowResult>& results,
                                        ThreadPool& pool) const
{
    results.clear();
    if (count_ == 0 || batch.k == 0) return;
    const OfBitmap<ExactTombstones>::Use dead = dead_rows(batch);
    Request request(*this, batch, 1, pool);
    DeviceArray<std::byte> workspace(context_.pool(), scan_workspace_bytes(count_), "exact scan workspace",
                                     request.stream());
    ScanJob job;
    job.metric = metric_;
    job.vectors = vectors_.data();
    job.rows = count_;
    job.dimensions = dimensions_;
    job.dead = dead != nullptr ? dead->view().bits : nullptr;
    job.query = request.queries();
    job.cursor = after;
    job.answer = request.answer();
    scan_rows(job, workspace.data(), request.stream());
    request.receive(pool, [&](std::size_t, std::size_t) { request.read(0, results); });
}

}  // namespace

std::unique_ptr<Searcher> make_exact_searcher(Context& context, const IndexShape& shape,
                                              std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceExactSearcher>(context, shape, arrays);
}

ExactStatistics exact_statistics(const Searcher& searcher)
{
    return dynamic_cast<const DeviceExactSearcher&>(searcher).statistics();
}

}  // namespace pgwarp::cuda
