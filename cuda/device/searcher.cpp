#include "device/searcher.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "device/error.h"
#include "device/wait.h"
#include "methods/device_wait.h"
#include "methods/ordered_scan.h"

namespace pgwarp::cuda
{

namespace
{

constexpr double marking_cost = 100;   // float operations to mark one row's tombstone
constexpr double sorting_cost = 1000;  // float operations to sort one row among all

// Copies the queries into page-locked memory and, unless `device` is null, on to the device. In pieces: one piece is on
// its way while the threads copy the next.
void send_queries(const float* from, std::size_t elements, float* staged, float* device, cudaStream_t stream,
                  ThreadPool& pool)
{
    const std::size_t piece = std::size_t{1} << (pool.threads() > 1 ? 20 : 18);
    for (std::size_t begin = 0; begin < elements; begin += piece) {
        const std::size_t count = std::min(piece, elements - begin);
        pool.parallel_for(count, std::size_t{1} << 16, [&](std::size_t first, std::size_t last) {
            std::memcpy(staged + begin + first, from + begin + first, (last - first) * sizeof(float));
        });
        if (device == nullptr) continue;
        check(cudaMemcpyAsync(device + begin, staged + begin, count * sizeof(float), cudaMemcpyHostToDevice, stream),
              "sending queries");
    }
}

// Queries [begin, end) of the chunk: at most k rows each.
void hand_out(const ChunkPlan& plan, const Answers& answers, std::size_t k, const Round& round, std::size_t chunk_first,
              std::size_t begin, std::size_t end, std::vector<std::vector<RowResult>>& results)
{
    for (std::size_t q = begin; q < end; ++q) {
        if (answers.found[q] == no_answer) continue;
        std::vector<RowResult>& result = results[round.number(chunk_first + q)];
        result.resize(std::min(plan.k, answers.found[q]));
        const std::size_t at = q * plan.k;
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = {answers.values[at + i], answers.rows[at + i]};
        if (!plan.ordered) {
            const auto kept = result.begin() + static_cast<std::ptrdiff_t>(std::min(k, result.size()));
            if (kept == result.end()) {
                std::sort(result.begin(), kept, comes_before);
            } else {
                std::partial_sort(result.begin(), kept, result.end(), comes_before);
            }
        }
        if (result.size() > k) result.resize(k);
    }
}

template <class T>
void copy_back(const T* from, T* to, std::size_t begin, std::size_t end, cudaStream_t stream)
{
    check(cudaMemcpyAsync(to + begin, from + begin, (end - begin) * sizeof(T), cudaMemcpyDeviceToHost, stream),
          "reading answers");
}

// Copies the answers from the device in pieces and calls receive(first query, end) after each: one piece is on its way
// while the threads convert the piece before.
template <class Receive>
void receive_answers(const ChunkPlan& plan, const Chunk& chunk, Workspace& workspace, const Receive& receive)
{
    constexpr std::size_t piece_results = std::size_t{1} << 18;
    const std::size_t results = std::size_t{plan.count} * plan.k;
    const std::size_t pieces = std::clamp<std::size_t>(results / piece_results, 1, Workspace::event_count);
    const auto first_of = [&](std::size_t piece) { return piece * plan.count / pieces; };
    copy_back(chunk.answers.found, chunk.arrived.found, 0, plan.count, chunk.stream);
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t begin = first_of(i) * plan.k;
        const std::size_t end = first_of(i + 1) * plan.k;
        copy_back(chunk.answers.values, chunk.arrived.values, begin, end, chunk.stream);
        copy_back(chunk.answers.rows, chunk.arrived.rows, begin, end, chunk.stream);
        workspace.event(i).record(chunk.stream);
    }
    for (std::size_t i = 0; i < pieces; ++i) {
        workspace.event(i).wait("waiting for answers");
        receive(first_of(i), first_of(i + 1));
    }
}

}  // namespace

void run_overlapped(OverlappedWork* overlapped_work)
{
    if (overlapped_work == nullptr || overlapped_work->begun()) return;
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    overlapped_work->run();
    check(cudaSetDevice(device), "choosing the device");
}

void send_written(const Chunk& chunk, std::size_t bytes)
{
    check(cudaMemcpyAsync(chunk.workspace, chunk.host_workspace, bytes, cudaMemcpyHostToDevice, chunk.stream),
          "sending queries");
}

Round::Round(const SearchBatch& batch)
    : all_(true), size_(batch.count), dimensions_(batch.queries.size() / batch.count), queries_(batch.queries)
{
}

Round::Round(const SearchBatch& batch, std::vector<std::uint32_t> numbers)
    : all_(false),
      size_(numbers.size()),
      dimensions_(batch.queries.size() / batch.count),
      numbers_(std::move(numbers)),
      copies_(size_ * dimensions_)
{
    for (std::size_t i = 0; i < size_; ++i) {
        std::copy_n(batch.queries.data() + numbers_[i] * dimensions_, dimensions_, copies_.data() + i * dimensions_);
    }
    queries_ = copies_;
}

DeviceSearcher::DeviceSearcher(Context& context, std::size_t dimensions, const char* name)
    : context_(context),
      dimensions_(dimensions),
      dead_stream_(context.lease(Priority::search)),
      workspaces_(context, name)
{
}

void DeviceSearcher::search(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    const DevicePatience patience(search_patience(batch));
    search_some(batch, results, [&](const Tombstones* dead) { search_queries(batch, dead, results, pool); });
}

void DeviceSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                  std::vector<RowResult>& results, ThreadPool& pool) const
{
    const auto rows = static_cast<double>(row_count());
    const double elements = rows * static_cast<double>(dimensions_);
    const DevicePatience patience(patience_for(2 * elements + rows * sorting_cost,
                                               rows * static_cast<double>(remote_row_bytes()),
                                               elements * canonical_operations));
    SearchBatch one;
    one.queries = batch.queries.first(dimensions_);
    if (batch.lists.count > 0) one.lists = batch.lists.row(0);
    one.settings = batch.settings;
    one.count = 1;
    one.k = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, row_count()));
    one.dead = batch.dead;
    one.dead_version = batch.dead_version;
    one.cancel = batch.cancel;
    search_or_give_back(one, [&] {
        Results answer(1);
        answer[0].swap(results);
        answer[0].clear();
        if (one.k > 0) {
            const OfBitmap<Tombstones>::Use dead = dead_rows(one);
            continue_query(one, {after_distance, after_row}, dead.get(), answer, pool);
        }
        results.swap(answer[0]);
    });
}

void DeviceSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                  Results& results, ThreadPool& pool) const
{
    std::size_t listed = 0;
    for (const RowList& list : rows) listed += list.size();
    const double elements = static_cast<double>(listed) * static_cast<double>(dimensions_);
    const DevicePatience patience(
        patience_for(2 * elements + static_cast<double>(listed) * sorting_cost, 0, elements * canonical_operations));
    search_some(batch, results, [&](const Tombstones* dead) { search_lists(batch, rows, after, dead, results, pool); });
}

void DeviceSearcher::search_all_rows(const SearchBatch& batch, const Round& round, Results& results,
                                     ThreadPool& pool) const
{
    SearchBatch one = batch;
    one.count = 1;
    for (std::size_t i = 0; i < round.size(); ++i) {
        batch.check_cancel();
        one.queries = {round.query(i), dimensions_};
        search_exact(one, -HUGE_VAL, 0, results[round.number(i)], pool);
    }
}

OfBitmap<Tombstones>::Use DeviceSearcher::dead_rows(const SearchBatch& batch) const
{
    if (batch.dead.empty()) return nullptr;
    check(cudaSetDevice(context_.device()), "choosing the device");
    return dead_.get(batch.dead_version, [&] {
        const DevicePatience patience(patience_for(marking_cost * static_cast<double>(row_count()),
                                                   static_cast<double>(batch.dead.size_bytes())));
        return make_tombstones(batch.dead, dead_stream_);
    });
}

Tombstones DeviceSearcher::make_tombstones(RowBitmap dead, const Context::Lease& stream) const
{
    return send_dead_rows(dead, row_count(), context_.pool(), stream);
}

void DeviceSearcher::drop_unused(const SearchBatch& batch) const
{
    workspaces_.drop_idle();
    dead_.drop_others(batch.dead_version);
}

Chunk DeviceSearcher::begin_chunk(const ChunkPlan& plan, const float* queries, Workspace& workspace,
                                  ThreadPool& pool) const
{
    const std::size_t elements = plan.count * dimensions_;
    Chunk chunk;
    chunk.given = queries;
    chunk.stream = workspace.stream();
    chunk.events = &workspace;
    float* staged = nullptr;
    float* sent = nullptr;
    const auto on_device = [&](Carver& memory) {
        if (!plan.reads_in_place) sent = memory.take<float>(elements);
        if (plan.answers_on_device) chunk.answers = take_answers(memory, plan.count, plan.k);
        chunk.workspace = memory.take<std::byte>(plan.workspace);
    };
    const auto on_host = [&](Carver& memory) {
        staged = memory.take<float>(elements);
        chunk.host_workspace = memory.take<std::byte>(plan.host_workspace);
        chunk.arrived = take_answers(memory, plan.count, plan.k);
    };
    Carver device(workspace.device(carved_bytes(on_device)));
    on_device(device);
    Carver host(workspace.pinned(carved_bytes(on_host)));
    on_host(host);
    send_queries(queries, elements, staged, sent, chunk.stream, pool);
    chunk.queries = plan.reads_in_place ? staged : sent;
    if (plan.answers_on_device) {
        // Queries with fewer rows leave places unwritten, and the copies read all places.
        const auto* begin = reinterpret_cast<const std::byte*>(chunk.answers.values);
        const auto* end = reinterpret_cast<const std::byte*>(chunk.answers.found + plan.count);
        check(cudaMemsetAsync(chunk.answers.values, 0, static_cast<std::size_t>(end - begin), chunk.stream),
              "clearing answers");
    } else {
        chunk.answers = chunk.arrived;
    }
    if (plan.watched.count() > 0) std::fill_n(chunk.arrived.found, plan.count, answer_pending);
    return chunk;
}

void DeviceSearcher::finish_chunk(const ChunkPlan& plan, const Chunk& chunk, const SearchBatch& batch,
                                  const Round& round, std::size_t first, Workspace& workspace, Results& results,
                                  ThreadPool& pool) const
{
    // Queries of one task: enough that handing a task to a thread takes little time beside reading the answers.
    const std::size_t grain = std::clamp<std::size_t>(20000 / plan.k, 16, 64);
    const auto receive = [&](std::size_t begin, std::size_t end) {
        pool.parallel_for(end - begin, grain, [&](std::size_t from, std::size_t to) {
            hand_out(plan, chunk.arrived, batch.k, round, first, begin + from, begin + to, results);
        });
    };
    run_overlapped(batch.overlapped_work);
    if (plan.answers_on_device) return receive_answers(plan, chunk, workspace, receive);
    std::size_t received = 0;
    if (plan.watched.count() > 0) {
        wait_for_answers(chunk.arrived.found, plan.count, plan.watched, chunk.stream);
    } else {
        for (std::size_t i = 0; plan.step > 0 && received + plan.step < plan.count && i < Workspace::event_count; ++i) {
            workspace.event(i).wait("waiting for answers");
            receive(received, received + plan.step);
            received += plan.step;
        }
        wait_for(chunk.stream, "waiting for answers");
    }
    receive(received, plan.count);
}

void DeviceSearcher::note_unfinished(const ChunkPlan& plan, const Chunk& chunk, const SearchBatch& batch,
                                     const Round& round, std::size_t first, Unfinished& unfinished) const
{
    const std::size_t k = std::min<std::size_t>(batch.k, row_count());
    for (std::size_t q = 0; q < plan.count; ++q) {
        const std::uint32_t found = chunk.arrived.found[q];
        if (found == no_answer) {
            unfinished.unanswered.push_back(round.number(first + q));
        } else if (std::min(found, plan.k) < k) {
            unfinished.few.push_back(round.number(first + q));
        }
    }
}

}  // namespace pgwarp::cuda
