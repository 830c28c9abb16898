#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "device/error.h"
#include "exact/exact.h"
#include "exact/staging.h"
#include "index/arrays.h"
#include "index/bounds.h"
#include "index/exact/exact.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t staging_bytes = std::size_t{8} << 20;

class DeviceExactSearcher : public Searcher
{
public:
    DeviceExactSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : context_(context),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          loading_(context.lease(Priority::build))
    {
        const ArrayShape* vectors = find_array(arrays, "vectors");
        if (vectors == nullptr) return;
        require_array(arrays, "vectors", ArrayType::f32, vectors->rows, dimensions_);
        count_ = static_cast<std::uint32_t>(vectors->rows);
        vectors_ = DeviceArray<float>(context.pool(), std::size_t{count_} * dimensions_, "exact vectors", loading_);
        loading_.stream().synchronize();
    }

    void write(const std::string&, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (offset > vectors_.bytes() || bytes.size() > vectors_.bytes() - offset) {
            throw BadRequest("past the end of an array");
        }
        const Context::Lease stream = context_.lease(Priority::build);
        auto staging = staging_.lease(std::min(bytes.size(), staging_bytes));
        auto* to = reinterpret_cast<std::byte*>(vectors_.data()) + offset;
        for (std::size_t done = 0; done < bytes.size(); done += staging_bytes) {
            const std::size_t piece = std::min(staging_bytes, bytes.size() - done);
            std::memcpy(staging.data(), bytes.data() + done, piece);
            check(cudaMemcpyAsync(to + done, staging.data(), piece, cudaMemcpyHostToDevice, stream), "loading vectors");
            stream.stream().synchronize();
        }
    }

    void finish_load(ThreadPool&) override
    {
        check(cudaSetDevice(context_.device()), "choosing the device");
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

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool&) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool&) const override;

    // The device serves a batch of any size without the engine's threads.
    double search_cost(const SearchBatch&) const override { return 0; }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    ExactStatistics statistics() const
    {
        return {queries_.load(std::memory_order_relaxed), filtered_again_.load(std::memory_order_relaxed),
                scanned_.load(std::memory_order_relaxed)};
    }

private:
    // The operands of one request on the device, and the way there and back through pinned memory.
    class Request;

    Context& context_;
    Metric metric_;
    std::uint32_t dimensions_;
    std::uint32_t count_ = 0;
    Context::Lease loading_;  // what is resident is freed in its order
    DeviceArray<float> vectors_;
    ExactRows rows_;
    mutable StagingPool staging_;
    mutable std::atomic<std::uint64_t> queries_{0};
    mutable std::atomic<std::uint64_t> filtered_again_{0};
    mutable std::atomic<std::uint64_t> scanned_{0};
};

class DeviceExactSearcher::Request
{
public:
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    Request(const DeviceExactSearcher& searcher, const SearchBatch& batch, std::uint32_t count)
        : stream_(searcher.context_.lease(Priority::search)),
          count_(count),
          k_(std::min(batch.k, searcher.count_)),
          query_bytes_(std::size_t{count} * searcher.dimensions_ * sizeof(float)),
          dead_bytes_(batch.dead.size_bytes()),
          results_(std::size_t{count} * k_),
          staging_(searcher.staging_.lease(std::max(query_bytes_ + dead_bytes_, results_ * 12 + count * 4))),
          memory_(searcher.context_.pool(),
                  round_up<std::size_t>(query_bytes_, 256) + round_up<std::size_t>(dead_bytes_, 256) + results_ * 12 +
                      count * 4,
                  "exact search operands", stream_)
    {
        std::byte* at = memory_.data();
        queries_ = reinterpret_cast<float*>(at);
        at += round_up<std::size_t>(query_bytes_, 256);
        if (dead_bytes_ > 0) dead_ = reinterpret_cast<std::uint64_t*>(at);
        at += round_up<std::size_t>(dead_bytes_, 256);
        answer_.values = reinterpret_cast<double*>(at);
        answer_.rows = reinterpret_cast<std::uint32_t*>(at + results_ * 8);
        answer_.found = answer_.rows + results_;
        answer_.k = k_;
        std::memcpy(staging_.data(), batch.queries.data(), query_bytes_);
        if (dead_bytes_ > 0) std::memcpy(staging_.data() + query_bytes_, batch.dead.data(), dead_bytes_);
        send(queries_, staging_.data(), query_bytes_);
        send(dead_, staging_.data() + query_bytes_, dead_bytes_);
        // Queries that find fewer rows leave places unwritten, which are copied back all the same.
        check(cudaMemsetAsync(answer_.values, 0, results_ * 12 + count_ * 4, stream_), "clearing the answer");
    }

    // A cancelled search may still be reading the staging buffer.
    ~Request() { (void)cudaStreamSynchronize(stream_); }

    // Waits for the answer.
    void receive()
    {
        // By now the queries have left the staging buffer: the search's own work follows them in the stream.
        check(cudaMemcpyAsync(staging_.data(), answer_.values, results_ * 12 + count_ * 4, cudaMemcpyDeviceToHost,
                              stream_),
              "reading results");
        stream_.stream().synchronize();
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
    const std::uint64_t* dead() const { return dead_; }
    const ExactAnswer& answer() const { return answer_; }
    cudaStream_t stream() const { return stream_; }

private:
    void send(void* to, const void* from, std::size_t bytes)
    {
        if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "sending queries");
    }

    Context::Lease stream_;
    std::uint32_t count_;
    std::uint32_t k_;
    std::size_t query_bytes_;
    std::size_t dead_bytes_;
    std::size_t results_;
    mutable StagingPool::Lease staging_;
    DeviceArray<std::byte> memory_;
    float* queries_ = nullptr;
    std::uint64_t* dead_ = nullptr;
    ExactAnswer answer_;
};

void DeviceExactSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                                 ThreadPool&) const
{
    results.assign(batch.count, {});
    if (count_ == 0 || batch.k == 0 || batch.count == 0) return;
    // Large answers in pieces: some 128 MiB of results at a time.
    const std::size_t most = std::max<std::size_t>(1, (std::size_t{10} << 20) / std::min(batch.k, count_));
    for (std::size_t first = 0; first < batch.count; first += most) {
        const auto width = static_cast<std::uint32_t>(std::min(most, batch.count - first));
        SearchBatch piece = batch;
        piece.queries = batch.queries.subspan(first * dimensions_, std::size_t{width} * dimensions_);
        Request request(*this, piece, width);
        ExactStatistics statistics;
        search_exactly(context_, rows_, request.queries(), width, request.dead(), request.answer(), statistics,
                       batch.cancel, request.stream());
        request.receive();
        for (std::uint32_t i = 0; i < width; ++i) request.read(i, results[first + i]);
        queries_.fetch_add(statistics.queries, std::memory_order_relaxed);
        filtered_again_.fetch_add(statistics.filtered_again, std::memory_order_relaxed);
        scanned_.fetch_add(statistics.scanned, std::memory_order_relaxed);
    }
}

void DeviceExactSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                       std::vector<RowResult>& results, ThreadPool&) const
{
    results.clear();
    if (count_ == 0 || batch.k == 0) return;
    Request request(*this, batch, 1);
    DeviceArray<std::byte> workspace(context_.pool(), scan_workspace_bytes(count_), "exact scan workspace",
                                     request.stream());
    ScanJob job;
    job.metric = metric_;
    job.vectors = vectors_.data();
    job.rows = count_;
    job.dimensions = dimensions_;
    job.dead = request.dead();
    job.query = request.queries();
    job.cursor = {after_distance, after_row};
    job.answer = request.answer();
    scan_rows(job, workspace.data(), request.stream());
    request.receive();
    request.read(0, results);
}

std::unique_ptr<Searcher> searcher_with_most_room(const IndexShape& shape, const ParameterList&,
                                                   std::span<const ArrayShape> arrays)
{
    return make_exact_searcher(roomiest(contexts()), shape, arrays);
}

}  // namespace

std::unique_ptr<Searcher> make_exact_searcher(Context& context, const IndexShape& shape,
                                              std::span<const ArrayShape> arrays)
{
    return std::make_unique<DeviceExactSearcher>(context, shape, arrays);
}

ExactStatistics exact_statistics(const Searcher& searcher)
{
    return dynamic_cast<const DeviceExactSearcher&>(searcher).statistics();
}

const MethodDescriptor* exact_method()
{
    static const MethodDescriptor descriptor{Method::exact, "exact", &make_exact_builder, &searcher_with_most_room};
    return &descriptor;
}

}  // namespace pgwarp::cuda
