#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "device/beside.h"
#include "device/error.h"
#include "device/retry.h"
#include "device/tombstones.h"
#include "device/wait.h"
#include "distance/canonical.h"
#include "graph/device_search.h"
#include "graph/graph.h"
#include "graph/rank.h"
#include "graph/seeds.h"
#include "graph/workspace.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "methods/ordered_scan.h"
#include "rows/ordered_rows.h"
#include "rows/queries.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::chrono::microseconds watched{500};           // then the device is waited for without spinning
constexpr std::uint32_t pending = 0xfffffffe;               // in `found`: no answer yet
constexpr double sorting_cost = 1000;                       // of a row among all, in float operations
constexpr std::uint32_t value_step = 1U << 20;              // rows whose values are computed by one launch
constexpr std::size_t remote_step = std::size_t{64} << 20;  // bytes that one launch reads over the bus

class GraphSearcher : public Searcher
{
public:
    GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                  Context& context)
        : mirror_(context, shape, options, arrays), dead_stream_(context.lease(Priority::search))
    {
    }
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const DevicePatience patience(build_patience);
        mirror_.write(array, offset, bytes);
    }
    void finish_load(ThreadPool&) override
    {
        const DevicePatience patience(build_patience);
        mirror_.finish_load();
    }
    std::uint64_t memory_bytes() const override { return mirror_.device_bytes() + mirror_.host_bytes(); }
    Residence residence() const override
    {
        return {mirror_.context().device(), mirror_.form() != Form::whole, mirror_.device_bytes()};
    }
    ResultKind result_kind() const override
    {
        switch (mirror_.options().vectors) {
            case GraphVectors::full:
                return mirror_.metric() == Metric::cosine ? ResultKind::lower_bound : ResultKind::exact;
            case GraphVectors::half:
                return ResultKind::lower_bound;
            case GraphVectors::bits:
                break;
        }
        return ResultKind::approximate;
    }
    double bound_width(const float* query) const override
    {
        const Metric metric = mirror_.metric();
        if (mirror_.options().vectors == GraphVectors::full) {
            return metric == Metric::cosine ? pgwarp::bound_width(metric, 0, 1) : 0;
        }
        if (mirror_.options().vectors == GraphVectors::bits) return 0;
        if (metric == Metric::l1) return 2 * mirror_.view().l1_error;
        return pgwarp::bound_width(metric, mirror_.half_error(), canonical_norm(query, mirror_.dimensions()));
    }
    // The device takes thousands of operations in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const double compared =
            4096 + 0.4 * static_cast<double>(mirror_.options().degree) * static_cast<double>(ef_of(batch));
        return 1e-3 * static_cast<double>(batch.count) * std::min(compared, static_cast<double>(mirror_.rows())) *
               static_cast<double>(mirror_.dimensions());
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("ef_search", static_cast<std::int64_t>(ef_of(batch)));
        return settings;
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        const DevicePatience patience(patience_for(2e3 * search_cost(batch)));
        search_or_give_back(
            batch, [&] { search_queries(batch, results, pool); }, [&] { drop_unused(batch); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool&) const override
    {
        const auto rows = static_cast<double>(mirror_.rows());
        const auto dimensions = static_cast<double>(mirror_.dimensions());
        const DevicePatience patience(patience_for(rows * (2 * dimensions + sorting_cost),
                                                   rows * static_cast<double>(mirror_.remote_row_bytes()),
                                                   rows * dimensions * canonical_operations));
        search_or_give_back(
            batch,
            [&] {
                continue_rows(batch, {after_distance, after_row}, results);
            },
            [&] { drop_unused(batch); });
    }

private:
    using Results = std::vector<std::vector<RowResult>>;
    // Queries of a batch that are searched alike.
    struct Round {
        const float* queries = nullptr;  // [count][dimensions]
        std::size_t count = 0;
        const std::uint32_t* numbers = nullptr;  // in the batch; none = in order
        std::size_t ef = 0;
        std::uint32_t number(std::size_t i) const
        {
            return numbers != nullptr ? numbers[i] : static_cast<std::uint32_t>(i);
        }
    };

    std::size_t ef_of(const SearchBatch& batch) const
    {
        return ef_search_of(batch.settings, batch.effort, batch.k, mirror_.rows());
    }
    void search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const;
    void continue_rows(const SearchBatch& batch, RowResult after, std::vector<RowResult>& results) const;
    bool may_traverse(const SearchBatch& batch, std::size_t ef) const;
    void run_round(const SearchBatch& batch, const Round& round, Workspace& workspace, const std::uint32_t* dead,
                   Results& results, std::vector<std::uint32_t>& few, ThreadPool& pool) const;
    void run_chunk(const SearchPlan& plan, const float* queries, Workspace& workspace, std::byte* device,
                   const std::uint32_t* dead, const rows::Answers& answers, Meanwhile* meanwhile,
                   ThreadPool& pool) const;
    void search_few_found(const SearchBatch& batch, const std::vector<std::uint32_t>& numbers, std::size_t ef,
                          Workspace& workspace, const std::uint32_t* dead, Results& results, ThreadPool& pool) const;
    void go_through_rows(const SearchBatch& batch, std::uint32_t number, Results& results, ThreadPool& pool) const;
    // What idle searches keep, and what was made of dead rows for batches before this one.
    void drop_unused(const SearchBatch& batch) const
    {
        workspaces_.drop_idle();
        dead_.drop_before(batch.dead_version);
    }
    // Null where none is dead.
    OfBitmap<DeadBits>::Use dead_rows(const SearchBatch& batch) const
    {
        if (batch.dead.empty()) return nullptr;
        check(cudaSetDevice(mirror_.context().device()), "choosing the device");
        return dead_.get(batch.dead_version, [&] {
            return send_dead_rows(batch.dead, mirror_.rows(), mirror_.context().pool(), dead_stream_);
        });
    }

    Mirror mirror_;
    Context::Lease dead_stream_;
    mutable OfBitmap<DeadBits> dead_;
    mutable Workspaces workspaces_;
};

// Whether the device has such a search: the queue and the query fit into a block's shared memory.
bool GraphSearcher::may_traverse(const SearchBatch& batch, std::size_t ef) const
{
    if (ef > most_ef) return false;
    const SearchGround ground = mirror_.ground();
    return search_shape(batch.settings, ef, batch.k, batch.count, ground).shared_bytes <= ground.shared_bytes;
}

// The host side of queries and answers: queries, values, rows, found.
std::size_t query_bytes_of(const SearchPlan& plan, std::size_t dimensions)
{
    return (plan.count * dimensions * sizeof(float) + 255) / 256 * 256;
}

// Runs the launches of one chunk and waits for its answers.
void GraphSearcher::run_chunk(const SearchPlan& plan, const float* queries, Workspace& workspace, std::byte* device,
                              const std::uint32_t* dead, const rows::Answers& answers, Meanwhile* meanwhile,
                              ThreadPool& pool) const
{
    const std::size_t elements = plan.count * mirror_.dimensions();
    const cudaStream_t stream = workspace.lease;
    auto* staged = reinterpret_cast<float*>(workspace.pinned(0));
    pool.parallel_for(elements, 1U << 16, [&](std::size_t first, std::size_t last) {
        std::memcpy(staged + first, queries + first, (last - first) * sizeof(float));
    });
    const auto* asked = plan.direct ? staged : reinterpret_cast<const float*>(device);
    if (!plan.direct) {
        check(cudaMemcpyAsync(device, staged, elements * sizeof(float), cudaMemcpyHostToDevice, stream),
              "copying queries");
    }
    if (plan.chained) std::fill_n(answers.found, plan.count, pending);
    enqueue_search(mirror_, plan, asked, queries, dead, device + query_bytes_of(plan, mirror_.dimensions()), answers,
                   nullptr, stream);
    run_beside(workspace.lease, meanwhile);
    if (!plan.chained) return wait_for(stream, "waiting for answers");
    wait_for_answers(answers.found, plan.count, pending, watched, stream);
}

void GraphSearcher::run_round(const SearchBatch& batch, const Round& round, Workspace& workspace,
                              const std::uint32_t* dead, Results& results, std::vector<std::uint32_t>& few,
                              ThreadPool& pool) const
{
    const std::size_t dimensions = mirror_.dimensions();
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    const std::size_t room = mirror_.context().pool().unspent() + workspace.device_bytes();
    std::size_t most = round.count;  // queries of a chunk: fewer where memory is short
    for (std::size_t begin = 0; begin < round.count;) {
        if (batch.cancel != nullptr) batch.cancel->check();
        const SearchPlan plan =
            plan_search(mirror_, batch.settings, round.ef, k, std::min(most, round.count - begin), room);
        const std::size_t query_bytes = query_bytes_of(plan, dimensions);
        const std::size_t cells = std::size_t{plan.count} * plan.k;
        std::byte* device = nullptr;
        try {
            device = workspace.device(plan.workspace + query_bytes);
        } catch (const std::bad_alloc&) {
            if (plan.count == 1) throw;
            workspace.drop_device();
            drop_unused(batch);
            most = plan.count / 2;
            continue;
        }
        std::byte* host = workspace.pinned(query_bytes + cells * 12 + plan.count * std::size_t{4});
        auto* values = reinterpret_cast<double*>(host + query_bytes);
        auto* rows = reinterpret_cast<std::uint32_t*>(values + cells);
        const rows::Answers answers{values, rows, rows + cells};
        run_chunk(plan, round.queries + begin * dimensions, workspace, device, dead, answers, batch.meanwhile, pool);
        pool.parallel_for(plan.count, 256, [&](std::size_t first, std::size_t last) {
            for (std::size_t q = first; q < last; ++q) {
                std::vector<RowResult>& result = results[round.number(begin + q)];
                result.resize(std::min(plan.k, answers.found[q]));
                for (std::size_t i = 0; i < result.size(); ++i)
                    result[i] = {values[q * plan.k + i], rows[q * plan.k + i]};
            }
        });
        for (std::size_t q = 0; q < plan.count; ++q) {
            if (results[round.number(begin + q)].size() < k) few.push_back(round.number(begin + q));
        }
        begin += plan.count;
    }
}

void GraphSearcher::go_through_rows(const SearchBatch& batch, std::uint32_t number, Results& results,
                                    ThreadPool& pool) const
{
    SearchBatch one = batch;
    one.queries = batch.queries.subspan(number * mirror_.dimensions(), mirror_.dimensions());
    one.count = 1;
    search_exact(one, -HUGE_VAL, 0, results[number], pool);
}

// Queries that found too few, as rows are dead, keep more rows; in the end all rows are gone through.
void GraphSearcher::search_few_found(const SearchBatch& batch, const std::vector<std::uint32_t>& numbers,
                                     std::size_t ef, Workspace& workspace, const std::uint32_t* dead, Results& results,
                                     ThreadPool& pool) const
{
    if (numbers.empty()) return;
    if (ef >= mirror_.rows() || !may_traverse(batch, ef)) {
        for (const std::uint32_t number : numbers) {
            if (batch.cancel != nullptr) batch.cancel->check();
            go_through_rows(batch, number, results, pool);
        }
        return;
    }
    const std::size_t dimensions = mirror_.dimensions();
    std::vector<float> queries(numbers.size() * dimensions);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        std::copy_n(batch.queries.data() + numbers[i] * dimensions, dimensions, queries.data() + i * dimensions);
    }
    std::vector<std::uint32_t> few;
    run_round(batch, {queries.data(), numbers.size(), numbers.data(), ef}, workspace, dead, results, few, pool);
    search_few_found(batch, few, 4 * ef, workspace, dead, results, pool);
}

void GraphSearcher::search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (mirror_.rows() == 0 || batch.k == 0 || batch.count == 0) return;
    const OfBitmap<DeadBits>::Use dead = dead_rows(batch);
    // Dead rows take places in the queue: as many as there are, which is none where few are dead.
    const double alive = dead != nullptr ? std::max(0.05, 1 - dead->share) : 1;
    const std::size_t asked = ef_of(batch);
    const auto widened = static_cast<std::size_t>(std::llround(static_cast<double>(asked) / alive));
    const std::size_t ef = std::min({std::max<std::size_t>(asked, most_ef), widened, mirror_.rows()});
    if (!may_traverse(batch, ef)) {
        for (std::uint32_t q = 0; q < batch.count; ++q) {
            if (batch.cancel != nullptr) batch.cancel->check();
            go_through_rows(batch, q, results, pool);
        }
        return;
    }
    auto workspace = workspaces_.take(mirror_.context());
    const std::uint32_t* dead_words = dead != nullptr ? dead->half_words() : nullptr;
    std::vector<std::uint32_t> few;
    run_round(batch, {batch.queries.data(), batch.count, nullptr, ef}, *workspace, dead_words, results, few, pool);
    search_few_found(batch, few, 4 * ef, *workspace, dead_words, results, pool);
    workspaces_.put_back(std::move(workspace));
}

// Waits for the rows, and sorts them where the device has not.
std::vector<RowResult> copy_ordered(const rows::OrderedRows& rows, std::uint32_t wanted, Workspace& workspace)
{
    std::byte* host = workspace.pinned(std::size_t{wanted} * 12 + 4);
    const auto* values = reinterpret_cast<const double*>(host);
    const auto* numbers = reinterpret_cast<const std::uint32_t*>(values + wanted);
    const auto copy = [&](std::size_t to, const void* from, std::size_t bytes) {
        check(cudaMemcpyAsync(host + to, from, bytes, cudaMemcpyDeviceToHost, workspace.lease), "copying rows");
    };
    copy(0, rows.values.data(), rows.values.bytes());
    copy(rows.values.bytes(), rows.rows.data(), rows.rows.bytes());
    copy(rows.values.bytes() + rows.rows.bytes(), rows.found.data(), rows.found.bytes());
    workspace.lease.stream().synchronize();
    std::vector<RowResult> results(numbers[wanted]);
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = {values[i], numbers[i]};
    if (wanted > rows::ordered_most) std::sort(results.begin(), results.end(), comes_before);
    return results;
}

void GraphSearcher::continue_rows(const SearchBatch& batch, RowResult after, std::vector<RowResult>& results) const
{
    results.clear();
    if (mirror_.rows() == 0 || batch.k == 0) return;
    auto workspace = workspaces_.take(mirror_.context());
    const GraphView& view = mirror_.view();
    const std::size_t dimensions = mirror_.dimensions();
    const Context::Lease& stream = workspace->lease;
    MemoryPool& memory = mirror_.context().pool();
    DeviceArray<float> query(memory, 2 * dimensions, "graph continuation", stream);
    DeviceArray<__half> halves(memory, view.vectors.stride, "graph continuation", stream);
    DeviceArray<float> multiplier(memory, 1, "graph continuation", stream);
    DeviceArray<double> norm(memory, 1, "graph continuation", stream);
    DeviceArray<std::uint32_t> bits(memory, view.bits.words, "graph continuation", stream);
    DeviceArray<double> values(memory, view.vectors.positions, "graph continuation", stream);
    send(query.data(), batch.queries.data(), dimensions * sizeof(float), stream, "copying queries");
    if (view.has_bits()) {
        project(view.bits, query.data(), static_cast<std::uint32_t>(dimensions), 1, bits.data(), stream);
    } else {
        rows::prepare_queries(query.data(), 1, view.vectors.dimensions,
                              rows::space_of(view.vectors.metric, view.vectors.half),
                              {query.data() + dimensions, halves.data(), multiplier.data(), norm.data()}, stream);
    }
    const std::size_t remote = mirror_.remote_row_bytes();
    const auto step = remote != 0 ? static_cast<std::uint32_t>(remote_step / remote + 1) : value_step;
    for (std::uint32_t first = 0; first < view.rows; first += step) {
        all_values(view, {query.data(), norm.data(), bits.data()}, first, std::min(step, view.rows - first),
                   values.data() + first, stream);
    }
    const OfBitmap<DeadBits>::Use dead = dead_rows(batch);
    const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, mirror_.rows()));
    rows::OrderedRows first(memory, wanted, stream);
    rows::first_after({values.data(), view.vectors.row_at, dead != nullptr ? dead->half_words() : nullptr, view.rows},
                      {after.distance, after.row}, wanted, first, stream);
    results = copy_ordered(first, wanted, *workspace);
    workspaces_.put_back(std::move(workspace));
}

}  // namespace

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<GraphSearcher>(shape, options, arrays, context);
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return make_searcher(shape, options, arrays, roomiest(contexts()));
}

}  // namespace pgwarp::cuda::graph
