#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include "device/beside.h"
#include "device/error.h"
#include "device/retry.h"
#include "device/tombstones.h"
#include "device/wait.h"
#include "distance/canonical.h"
#include "ivfadc/device_search.h"
#include "ivfadc/ivfadc.h"
#include "ivfadc/mirror_kernels.h"
#include "ivfadc/query_space.h"
#include "ivfadc/refine_factor.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "methods/ordered_scan.h"
#include "rows/ordered_rows.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr std::size_t kept_workspace = std::size_t{64} << 20;
constexpr std::chrono::microseconds watched{500};           // then the device is waited for without spinning
constexpr std::uint32_t pending = 0xfffffffe;               // in `found`: no answer yet
constexpr double sorting_cost = 1000;                       // of a row among all, in float operations
constexpr std::uint32_t value_step = 1U << 20;              // positions whose values are computed by one launch
constexpr std::size_t remote_step = std::size_t{64} << 20;  // bytes that one launch reads over the bus

// What one search at a time uses: a stream, device memory and page-locked memory.
struct Workspace {
    explicit Workspace(Context& context) : lease(context.lease(Priority::search)), pool(&context.pool()) {}

    std::byte* device(std::size_t bytes)
    {
        if (memory.size() < bytes) {
            memory = {};
            memory = DeviceArray<std::byte>(*pool, bytes, "ivfadc workspace", lease);
        }
        return memory.data();
    }
    std::byte* pinned(std::size_t bytes)
    {
        if (host.size() < bytes) {
            host = {};
            host = PinnedArray<std::byte>(bytes);
        }
        return host.data();
    }

    Context::Lease lease;
    MemoryPool* pool;
    DeviceArray<std::byte> memory;
    PinnedArray<std::byte> host;
};

// Tombstones by position.
using DeadPositions = DeviceArray<std::uint32_t>;

// stream: of the mirror; what is made is freed in its order. Waits.
DeadPositions make_dead_positions(RowBitmap dead, const Mirror& mirror, const Context::Lease& stream)
{
    Context& context = mirror.context();
    const std::uint32_t positions = mirror.view().positions;
    const DeadBits bits = send_dead_rows(dead, mirror.rows(), context.pool(), stream);
    DeadPositions made(context.pool(), positions / 32, "ivfadc dead rows", stream);
    dead_positions(bits.words.data(), mirror.view().row_at, positions, made.data(), stream);
    wait_for(stream, "placing dead rows");
    return made;
}

class IvfadcSearcher : public Searcher
{
public:
    IvfadcSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                   Context& context)
        : mirror_(context, shape, options, arrays), dead_stream_(context.lease(Priority::search))
    {
    }
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const DevicePatience patience(build_patience);
        mirror_.write(array, offset, bytes);
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        mirror_.finish_load(pool);
        if (mirror_.form() == Form::codes && !mirror_.view().scans_bytes) measure_factors(pool);
    }
    std::uint64_t memory_bytes() const override { return mirror_.device_bytes() + mirror_.host_bytes(); }
    Residence residence() const override
    {
        return {mirror_.context().device(), mirror_.form() != Form::whole, mirror_.device_bytes()};
    }
    ResultKind result_kind() const override
    {
        if (mirror_.options().keeps_full()) {
            return mirror_.metric() == Metric::cosine ? ResultKind::lower_bound : ResultKind::exact;
        }
        return mirror_.options().keeps_half() ? ResultKind::lower_bound : ResultKind::approximate;
    }
    double bound_width(const float* query) const override
    {
        const Metric metric = mirror_.metric();
        if (mirror_.options().keeps_full()) return metric == Metric::cosine ? pgwarp::bound_width(metric, 0, 1) : 0;
        if (!mirror_.options().keeps_half()) return 0;
        return pgwarp::bound_width(metric, mirror_.half_error(), canonical_norm(query, mirror_.dimensions()));
    }
    // The device takes thousands of operations in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const double scanned = static_cast<double>(mirror_.rows()) * static_cast<double>(probes_of(batch)) /
                               static_cast<double>(mirror_.lists());
        return 1e-3 * static_cast<double>(batch.count) * (static_cast<double>(mirror_.lists()) + scanned) *
               static_cast<double>(mirror_.dimensions());
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("probes", static_cast<std::int64_t>(probes_of(batch)));
        settings.set("refine_factor", static_cast<std::int64_t>(refine_factor_of(batch)));
        return settings;
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        const double ranked = static_cast<double>(batch.count) * batch.k * static_cast<double>(refine_factor_of(batch));
        const DevicePatience patience(
            patience_for(2e3 * search_cost(batch), ranked * static_cast<double>(mirror_.remote_row_bytes())));
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
    // Queries of a batch on their way: those of one round have the same settings.
    struct Round {
        const float* queries = nullptr;  // [count][dimensions]
        std::size_t count = 0;
        const std::uint32_t* numbers = nullptr;  // in the batch; none = in order
        std::size_t probes = 0;
        bool may_limit = true;
        std::uint32_t number(std::size_t i) const
        {
            return numbers != nullptr ? numbers[i] : static_cast<std::uint32_t>(i);
        }
    };
    using Results = std::vector<std::vector<RowResult>>;

    void search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const;
    void continue_rows(const SearchBatch& batch, RowResult after, std::vector<RowResult>& results) const;
    std::size_t probes_of(const SearchBatch& batch) const;
    // Where the scan compares the very vectors that values are computed from, no more than near ties need ranking. But
    // bytes propose for other vectors: then as many are ranked as on the CPU. For product codes it is measured.
    std::size_t refine_factor_of(const SearchBatch& batch) const
    {
        const std::int64_t asked = batch.settings.get("refine_factor", 0);
        if (asked > 0) return static_cast<std::size_t>(asked);
        if (mirror_.view().scans_bytes) {
            if (mirror_.view().values_of_residuals()) return 1;
            return batch.k <= 20 ? 3 : 2;
        }
        return mirror_.form() == Form::codes ? factors_.of(batch.k) : 1;
    }
    // Null where none is dead.
    OfBitmap<DeadPositions>::Use dead_rows(const SearchBatch& batch) const
    {
        if (batch.dead.empty()) return nullptr;
        check(cudaSetDevice(mirror_.context().device()), "choosing the device");
        return dead_.get(batch.dead_version, [&] { return make_dead_positions(batch.dead, mirror_, dead_stream_); });
    }
    void measure_factors(ThreadPool& pool);
    void run_round(const SearchBatch& batch, const Round& round, Workspace& workspace, const std::uint32_t* dead,
                   Results& results, std::vector<std::uint32_t>& few, std::vector<std::uint32_t>& lost,
                   ThreadPool& pool) const;
    void run_chunk(const SearchPlan& plan, const std::byte* host, std::byte* device, std::size_t query_bytes,
                   const std::uint32_t* dead, const Answers& answers, Workspace& workspace, Meanwhile* meanwhile) const;
    void run_again(const SearchBatch& batch, const std::vector<std::uint32_t>& numbers, std::size_t probes,
                   bool may_limit, Workspace& workspace, const std::uint32_t* dead, Results& results,
                   ThreadPool& pool) const;
    std::unique_ptr<Workspace> take_workspace() const;
    DeviceArray<double> take_values(std::size_t count, Workspace& workspace) const;
    void put_back(std::unique_ptr<Workspace> workspace) const;
    void drop_idle_workspaces() const;
    // And what was made of dead rows for batches before this one.
    void drop_unused(const SearchBatch& batch) const
    {
        drop_idle_workspaces();
        dead_.drop_before(batch.dead_version);
    }

    Mirror mirror_;
    RefineFactors factors_;
    Context::Lease dead_stream_;
    mutable OfBitmap<DeadPositions> dead_;
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<Workspace>> workspaces_;
};

std::size_t IvfadcSearcher::probes_of(const SearchBatch& batch) const
{
    std::int64_t probes = batch.settings.get("probes", 0);
    if (probes <= 0) probes = batch.effort;
    // An index too small to be calibrated is searched whole.
    if (probes <= 0) probes = static_cast<std::int64_t>(mirror_.lists());
    return std::min<std::size_t>(static_cast<std::size_t>(probes), mirror_.lists());
}

void IvfadcSearcher::measure_factors(ThreadPool& pool)
{
    constexpr std::size_t most_queries = 128;
    constexpr double share = 0.998;
    const std::size_t count = std::min(most_queries, mirror_.rows());
    if (count == 0) return;
    std::vector<float> queries(count * mirror_.dimensions());
    for (std::size_t i = 0; i < count; ++i) {
        mirror_.read_remote(sample_row(i, count, mirror_.rows()),
                            std::span(queries).subspan(i * mirror_.dimensions(), mirror_.dimensions()));
    }
    // More than most searches probe: with what is probed, more gets between the rows wanted.
    const std::size_t probes = std::min(mirror_.lists(), std::clamp<std::size_t>(mirror_.lists() / 8, 64, 512));
    factors_ = measure_refine_factors(*this, queries, count, mirror_.rows(), probes, share, pool);
}

std::unique_ptr<Workspace> IvfadcSearcher::take_workspace() const
{
    check(cudaSetDevice(mirror_.context().device()), "choosing the device");
    {
        const std::lock_guard lock(mutex_);
        if (!workspaces_.empty()) {
            auto workspace = std::move(workspaces_.back());
            workspaces_.pop_back();
            return workspace;
        }
    }
    return std::make_unique<Workspace>(mirror_.context());
}

// Large workspaces go back to the pool.
void IvfadcSearcher::put_back(std::unique_ptr<Workspace> workspace) const
{
    if (workspace->memory.size() > kept_workspace) workspace->memory = {};
    if (workspace->host.size() > kept_workspace) workspace->host = {};
    const std::lock_guard lock(mutex_);
    workspaces_.push_back(std::move(workspace));
}

void IvfadcSearcher::drop_idle_workspaces() const
{
    std::vector<std::unique_ptr<Workspace>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(workspaces_);
}

// Answers of one chunk, in page-locked memory.
struct ChunkAnswers {
    Answers answers;
    std::size_t k;

    void copy(std::size_t query, std::size_t count, std::vector<RowResult>& to) const
    {
        to.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            to[i] = {answers.values[query * k + i], answers.rows[query * k + i]};
        }
    }
};

// Runs the launches of one chunk and waits for its answers. Queries are at the beginning of `host`.
void IvfadcSearcher::run_chunk(const SearchPlan& plan, const std::byte* host, std::byte* device,
                               std::size_t query_bytes, const std::uint32_t* dead, const Answers& answers,
                               Workspace& workspace, Meanwhile* meanwhile) const
{
    const cudaStream_t stream = workspace.lease;
    const auto* queries = reinterpret_cast<const float*>(host);
    if (!plan.few) {
        check(cudaMemcpyAsync(device, host, plan.count * mirror_.dimensions() * sizeof(float), cudaMemcpyHostToDevice,
                              stream),
              "copying queries");
        queries = reinterpret_cast<const float*>(device);
    }
    if (plan.grouped) std::fill_n(answers.found, plan.count, pending);
    enqueue_search(mirror_, plan, queries, dead, device + query_bytes, answers, stream);
    run_beside(workspace.lease, meanwhile);
    if (!plan.grouped) return wait_for(stream, "waiting for answers");
    wait_for_answers(answers.found, plan.count, pending, watched, stream);
}

void IvfadcSearcher::run_round(const SearchBatch& batch, const Round& round, Workspace& workspace,
                               const std::uint32_t* dead, Results& results, std::vector<std::uint32_t>& few,
                               std::vector<std::uint32_t>& lost, ThreadPool& pool) const
{
    const std::size_t rows = mirror_.rows();
    const std::size_t dimensions = mirror_.dimensions();
    const std::size_t k = std::min<std::size_t>(batch.k, rows);
    // Scores in single precision may swap near ties: a few more than k are ranked by their values.
    const std::size_t wanted =
        std::min<std::size_t>(rows, std::max<std::size_t>(k * refine_factor_of(batch), k + 8 + k / 8));
    std::size_t most = round.count;  // queries of a chunk: fewer where memory is short
    const std::size_t room = mirror_.context().pool().unspent() + workspace.memory.bytes();
    for (std::size_t begin = 0; begin < round.count;) {
        if (batch.cancel != nullptr) batch.cancel->check();
        const SearchPlan plan =
            plan_search(mirror_, std::min(most, round.count - begin), round.probes, wanted, k, round.may_limit, room);
        const std::size_t query_bytes = (plan.count * dimensions * sizeof(float) + 255) / 256 * 256;
        const std::size_t answers = std::size_t{plan.count} * plan.k;
        std::byte* device = nullptr;
        try {
            device = workspace.device(plan.workspace + query_bytes);
        } catch (const std::bad_alloc&) {
            if (plan.count == 1) throw;
            workspace.memory = {};
            drop_unused(batch);
            most = plan.count / 2;
            continue;
        }
        std::byte* host = workspace.pinned(query_bytes + answers * 12 + plan.count * 4);
        const auto values = reinterpret_cast<double*>(host + query_bytes);
        const auto row_numbers = reinterpret_cast<std::uint32_t*>(values + answers);
        const ChunkAnswers chunk{{values, row_numbers, row_numbers + answers}, plan.k};

        const float* from = round.queries + begin * dimensions;
        const std::size_t elements = plan.count * dimensions;
        pool.parallel_for(elements, 1U << 16, [&](std::size_t first, std::size_t last) {
            std::memcpy(reinterpret_cast<float*>(host) + first, from + first, (last - first) * sizeof(float));
        });
        run_chunk(plan, host, device, query_bytes, dead, chunk.answers, workspace, batch.meanwhile);

        pool.parallel_for(plan.count, 256, [&](std::size_t first, std::size_t last) {
            for (std::size_t q = first; q < last; ++q) {
                const std::uint32_t found = chunk.answers.found[q];
                if (found == overflowed || found < k) continue;
                std::vector<RowResult>& result = results[round.number(begin + q)];
                chunk.copy(q, plan.wide ? found : k, result);
                if (!plan.wide) continue;
                std::partial_sort(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(k), result.end(),
                                  comes_before);
                result.resize(k);
            }
        });
        for (std::size_t q = 0; q < plan.count; ++q) {
            const std::uint32_t found = chunk.answers.found[q];
            if (found == overflowed) {
                lost.push_back(round.number(begin + q));
            } else if (found < k) {
                few.push_back(round.number(begin + q));
            }
        }
        begin += plan.count;
    }
}

// Queries whose limit let too much pass go without one; those that found too few probe more lists, and in the end
// everything: scores out of float's range may hide rows, values don't.
void IvfadcSearcher::run_again(const SearchBatch& batch, const std::vector<std::uint32_t>& numbers, std::size_t probes,
                               bool may_limit, Workspace& workspace, const std::uint32_t* dead, Results& results,
                               ThreadPool& pool) const
{
    if (numbers.empty()) return;
    const std::size_t dimensions = mirror_.dimensions();
    std::vector<float> queries(numbers.size() * dimensions);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        std::copy_n(batch.queries.data() + numbers[i] * dimensions, dimensions, queries.data() + i * dimensions);
    }
    std::vector<std::uint32_t> few;
    std::vector<std::uint32_t> lost;
    run_round(batch, {queries.data(), numbers.size(), numbers.data(), probes, may_limit}, workspace, dead, results, few,
              lost, pool);
    run_again(batch, lost, probes, false, workspace, dead, results, pool);
    if (probes < mirror_.lists()) {
        return run_again(batch, few, std::min(4 * probes, mirror_.lists()), may_limit, workspace, dead, results, pool);
    }
    for (const std::uint32_t number : few) {
        SearchBatch one = batch;
        one.queries = batch.queries.subspan(number * dimensions, dimensions);
        search_exact(one, -HUGE_VAL, 0, results[number], pool);
    }
}

void IvfadcSearcher::search_queries(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (mirror_.rows() == 0 || batch.k == 0 || batch.count == 0) return;
    auto workspace = take_workspace();
    const OfBitmap<DeadPositions>::Use dead = dead_rows(batch);
    const std::uint32_t* dead_words = dead != nullptr ? dead->data() : nullptr;
    const std::size_t probes = probes_of(batch);
    std::vector<std::uint32_t> few;
    std::vector<std::uint32_t> lost;
    run_round(batch, {batch.queries.data(), batch.count, nullptr, probes, true}, *workspace, dead_words, results, few,
              lost, pool);
    run_again(batch, lost, probes, false, *workspace, dead_words, results, pool);
    // Probing everything again ends in the exact answer.
    run_again(batch, few, std::min(4 * probes, mirror_.lists()), true, *workspace, dead_words, results, pool);
    put_back(std::move(workspace));
}

// Waits for the rows, and sorts them where the device has not.
std::vector<RowResult> copy_ordered(const OrderedRows& rows, std::uint32_t wanted, Workspace& workspace)
{
    const Context::Lease& stream = workspace.lease;
    std::byte* host = workspace.pinned(std::size_t{wanted} * 12 + 4);
    const auto* values = reinterpret_cast<const double*>(host);
    const auto* numbers = reinterpret_cast<const std::uint32_t*>(values + wanted);
    const auto copy = [&](std::size_t to, const void* from, std::size_t bytes) {
        check(cudaMemcpyAsync(host + to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying rows");
    };
    copy(0, rows.values.data(), rows.values.bytes());
    copy(rows.values.bytes(), rows.rows.data(), rows.rows.bytes());
    copy(rows.values.bytes() + rows.rows.bytes(), rows.found.data(), rows.found.bytes());
    stream.stream().synchronize();
    std::vector<RowResult> results(numbers[wanted]);
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = {values[i], numbers[i]};
    if (wanted > ordered_most) std::sort(results.begin(), results.end(), comes_before);
    return results;
}

// Where memory is short, what workspaces keep is given up for it.
DeviceArray<double> IvfadcSearcher::take_values(std::size_t count, Workspace& workspace) const
{
    MemoryPool& memory = mirror_.context().pool();
    try {
        return {memory, count, "ivfadc continuation", workspace.lease};
    } catch (const std::bad_alloc&) {
        workspace.memory = {};
        drop_idle_workspaces();
        return {memory, count, "ivfadc continuation", workspace.lease};
    }
}

void IvfadcSearcher::continue_rows(const SearchBatch& batch, RowResult after, std::vector<RowResult>& results) const
{
    results.clear();
    if (mirror_.rows() == 0 || batch.k == 0) return;
    auto workspace = take_workspace();
    const MirrorView& view = mirror_.view();
    const std::size_t dimensions = mirror_.dimensions();
    const Context::Lease& stream = workspace->lease;
    MemoryPool& memory = mirror_.context().pool();
    DeviceArray<float> query(memory, 2 * dimensions, "ivfadc continuation", stream);
    DeviceArray<__half> halves(memory, view.stride, "ivfadc continuation", stream);
    DeviceArray<float> multiplier(memory, 1, "ivfadc continuation", stream);
    DeviceArray<double> values = take_values(view.positions + std::size_t{1}, *workspace);
    double* norm = values.data() + view.positions;
    send(query.data(), batch.queries.data(), dimensions * sizeof(float), stream, "copying queries");
    const PreparedQueries prepared{query.data() + dimensions, halves.data(), multiplier.data(), norm};
    prepare_queries(query.data(), 1, view.dimensions, space_of_rows(view), prepared, stream);
    const QueryView queries{query.data(), prepared.moved, prepared.halves, prepared.multipliers, norm};
    const std::size_t remote = mirror_.remote_row_bytes();
    const auto step = remote != 0 ? static_cast<std::uint32_t>(remote_step / remote + 1) : value_step;
    for (std::uint32_t first = 0; first < view.positions; first += step) {
        all_values(view, queries, first, std::min(step, view.positions - first), values.data() + first, stream);
    }
    const OfBitmap<DeadPositions>::Use dead = dead_rows(batch);
    const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, mirror_.rows()));
    OrderedRows first(memory, wanted, stream);
    first_after({values.data(), view.row_at, dead != nullptr ? dead->data() : nullptr, view.positions},
                {after.distance, after.row}, wanted, first, stream);
    results = copy_ordered(first, wanted, *workspace);
    put_back(std::move(workspace));
}

}  // namespace

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<IvfadcSearcher>(shape, options, arrays, context);
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return make_searcher(shape, options, arrays, roomiest(contexts()));
}

}  // namespace pgwarp::cuda::ivfadc
