// The base of every method's searcher on a device. A search is a round of queries, cut into chunks. For each chunk the
// queries go to the device, the method enqueues its launches, and the host waits for the answers and converts them. A
// method plans and enqueues; this class does memory, copies, waits, tombstones, continuations and retries after short
// memory. Only queries that are lists are written and sent by the method, in a form of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "device/answers.h"
#include "device/context.h"
#include "device/tombstones.h"
#include "device/workspace.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

// Queries of one batch that are searched with the same settings. Lists stay in the batch.
class Round
{
public:
    // All queries of the batch, read in place.
    explicit Round(const SearchBatch& batch);
    // The queries with these numbers, copied.
    Round(const SearchBatch& batch, std::vector<std::uint32_t> numbers);

    std::size_t size() const { return size_; }
    // Dense queries from the i-th on: [size - i][dimensions].
    const float* query(std::size_t i) const { return queries_.data() + i * dimensions_; }
    // The number of the i-th query in the batch.
    std::uint32_t number(std::size_t i) const { return all_ ? static_cast<std::uint32_t>(i) : numbers_[i]; }

private:
    bool all_;
    std::size_t size_;
    std::size_t dimensions_;
    std::vector<std::uint32_t> numbers_;
    std::vector<float> copies_;
    std::span<const float> queries_;
};

// How a chunk is searched; methods add the shape of their launches.
struct ChunkPlan {
    std::uint32_t count = 0;         // queries
    std::uint32_t step = 0;          // queries whose answers are handed out before the next are there; 0: all
    std::uint32_t k = 0;             // places of a query in the answer
    std::size_t workspace = 0;       // bytes of device memory
    std::size_t host_workspace = 0;  // bytes of page-locked memory
    bool reads_in_place = false;     // kernels read the queries from page-locked memory
    bool answers_on_device = false;  // kernels write answers to the device, else to page-locked memory
    bool ordered = true;             // the answers come in order; else the host sorts the rows of each query
    // How long the host polls `found` before it waits for the stream; 0: not at all. The kernels write found[q] after
    // the rest of query q's answer.
    std::chrono::microseconds watched{0};
};

// A chunk under way.
struct Chunk {
    const float* given = nullptr;         // dense queries [count][dimensions] in memory of the host
    const float* queries = nullptr;       // the same queries as kernels read them
    std::byte* workspace = nullptr;       // plan.workspace bytes, aligned for a Carver
    std::byte* host_workspace = nullptr;  // plan.host_workspace bytes, aligned too
    Answers answers;                      // the addresses that kernels write, [count][k]
    Answers arrived;                      // the same in page-locked memory
    cudaStream_t stream = nullptr;
    Workspace* events = nullptr;

    // Called when the launches for the plan's i-th step are enqueued, where steps are handed out.
    void end_step(std::size_t i) const
    {
        if (i < Workspace::event_count) events->event(i).record(stream);
    }
};

// Sends the first bytes of the page-locked workspace to the front of the one on the device, where they have the same
// layout.
void send_written(const Chunk& chunk, std::size_t bytes);

// Numbers of the queries that a round could not finish.
struct Unfinished {
    std::vector<std::uint32_t> few;         // fewer than k rows were found
    std::vector<std::uint32_t> unanswered;  // found[q] is no_answer
};

// Whether the work beside the search has begun. It runs once, so a search in which it begins cannot be tried again.
inline bool meanwhile_begun(const SearchBatch& batch)
{
    return batch.overlapped_work != nullptr && batch.overlapped_work->begun();
}

// Runs the batch's work beside the search, if there is any. That work may make another device current.
void run_overlapped(OverlappedWork* overlapped_work);

class DeviceSearcher : public Searcher
{
public:
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const final;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const final;
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const final;

protected:
    using Results = std::vector<std::vector<RowResult>>;

    // dimensions: 0 where rows are lists. name: the purpose of the device memory of searches, a static string.
    DeviceSearcher(Context& context, std::size_t dimensions, const char* name);

    virtual std::size_t row_count() const = 0;
    // Bytes that the exact value of a row reads over the bus; 0 where the vectors are in device memory.
    virtual std::size_t remote_row_bytes() const { return 0; }
    // The longest time that a wait in a search of the batch may take.
    virtual std::chrono::milliseconds search_patience(const SearchBatch& batch) const = 0;
    // Returns the form of the bitmap that the method's kernels read, made in the order of `stream`. Waits. The default:
    // the words of the bitmap.
    virtual Tombstones make_tombstones(RowBitmap dead, const Context::Lease& stream) const;
    // Called where batch, index and k are not empty; `results` has an empty vector for each query. dead: null where no
    // row is dead.
    virtual void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                ThreadPool& pool) const = 0;
    // The first `one.k` rows of the batch's only query strictly after `after` in the order of (value, row), by the most
    // exact rows of the index, into answer[0], which is empty. The batch has the query's settings, k is not 0.
    virtual void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                                ThreadPool& pool) const = 0;
    // The first batch.k rows of each query's list strictly after `after`, as continue_query() orders them. Called as
    // search_queries() is, and only where compares_certain_rows().
    virtual void search_lists(const SearchBatch&, std::span<const RowList>, const RowResult&, const Tombstones*,
                              Results&, ThreadPool&) const
    {
        throw BadRequest("this index method does not compare certain rows alone");
    }

    // Calls search(dead) with a vector for each query, unless there is nothing to find.
    template <class Search>
    void search_some(const SearchBatch& batch, Results& results, const Search& search) const;
    // Searches a round chunk by chunk. plan_of(first, count, room) plans a chunk of at most `count` queries from the
    // round's query `first` on, with `room` bytes of device memory, and returns a ChunkPlan or a class derived from it.
    // enqueue(plan, chunk) enqueues its launches. Where memory is short, idle memory is freed and a chunk of half the
    // queries is tried, of `least` at least. Where memory is short for so few after that, too, they and the queries
    // behind them remain unanswered, except that with a `least` of 1 the error is thrown.
    template <class PlanOf, class Enqueue>
    Unfinished search_round(const SearchBatch& batch, const Round& round, const PlanOf& plan_of, const Enqueue& enqueue,
                            Results& results, ThreadPool& pool, std::size_t least = 1) const;
    // Searches the batch's only query. The plan gives the bytes of workspace and whether the rows come in order. The
    // answer is on the device.
    template <class Enqueue>
    void search_one(const SearchBatch& one, ChunkPlan plan, const Enqueue& enqueue, Results& answer,
                    ThreadPool& pool) const;
    // The queries are on their way when it returns, unless they are lists.
    Chunk begin_chunk(const ChunkPlan& plan, const float* queries, Workspace& workspace, ThreadPool& pool) const;
    // Answers each dense query of the round by search_exact() from the nearest row on.
    void search_all_rows(const SearchBatch& batch, const Round& round, Results& results, ThreadPool& pool) const;

    Context& context() const { return context_; }
    std::size_t dimensions() const { return dimensions_; }
    // Loads use them too.
    Workspaces& workspaces() const { return workspaces_; }

private:
    // Frees idle workspaces, and tombstones of other versions than the batch's.
    void drop_unused(const SearchBatch& batch) const;
    // Returns null where no row is dead.
    OfBitmap<Tombstones>::Use dead_rows(const SearchBatch& batch) const;
    template <class Search>
    void search_or_give_back(const SearchBatch& batch, const Search& search) const;
    void finish_chunk(const ChunkPlan& plan, const Chunk& chunk, const SearchBatch& batch, const Round& round,
                      std::size_t first, Workspace& workspace, Results& results, ThreadPool& pool) const;
    void note_unfinished(const ChunkPlan& plan, const Chunk& chunk, const SearchBatch& batch, const Round& round,
                         std::size_t first, Unfinished& unfinished) const;

    Context& context_;
    std::size_t dimensions_;
    Context::Lease dead_stream_;  // tombstones are made and freed in its order
    mutable OfBitmap<Tombstones> dead_;
    mutable Workspaces workspaces_;
};

// The second try follows drop_unused(). By then the first try has freed its own memory.
template <class Search>
void DeviceSearcher::search_or_give_back(const SearchBatch& batch, const Search& search) const
{
    const bool had_begun = meanwhile_begun(batch);
    try {
        return search();
    } catch (const std::bad_alloc&) {
        if (meanwhile_begun(batch) != had_begun) throw;
        drop_unused(batch);
    }
    search();
}

template <class Search>
void DeviceSearcher::search_some(const SearchBatch& batch, Results& results, const Search& search) const
{
    search_or_give_back(batch, [&] {
        results.resize(batch.count);
        for (auto& result : results) result.clear();
        if (row_count() == 0 || batch.k == 0 || batch.count == 0) return;
        const OfBitmap<Tombstones>::Use dead = dead_rows(batch);
        search(dead.get());
    });
}

template <class PlanOf, class Enqueue>
Unfinished DeviceSearcher::search_round(const SearchBatch& batch, const Round& round, const PlanOf& plan_of,
                                        const Enqueue& enqueue, Results& results, ThreadPool& pool,
                                        std::size_t least) const
{
    Unfinished unfinished;
    std::size_t most = round.size();
    bool freed = false;  // since the last chunk that was answered
    for (std::size_t first = 0; first < round.size();) {
        batch.check_cancel();
        const bool had_begun = meanwhile_begun(batch);
        std::size_t width = std::min(most, round.size() - first);
        try {
            const Workspaces::Lease workspace(workspaces_);
            const auto plan = plan_of(first, width, context_.pool().unspent_with(workspace->device_bytes()));
            width = plan.count;
            const Chunk chunk = begin_chunk(plan, round.query(first), *workspace, pool);
            enqueue(plan, chunk);
            finish_chunk(plan, chunk, batch, round, first, *workspace, results, pool);
            note_unfinished(plan, chunk, batch, round, first, unfinished);
        } catch (const std::bad_alloc&) {
            const bool fewest = width <= least;
            if (meanwhile_begun(batch) != had_begun || (fewest && least == 1)) throw;
            drop_unused(batch);
            const bool was_freed = std::exchange(freed, true);
            if (!fewest || !was_freed) {
                most = std::max(least, width / 2);
                continue;
            }
            for (; first < round.size(); ++first) unfinished.unanswered.push_back(round.number(first));
            break;
        }
        first += width;
        freed = false;
    }
    return unfinished;
}

template <class Enqueue>
void DeviceSearcher::search_one(const SearchBatch& one, ChunkPlan plan, const Enqueue& enqueue, Results& answer,
                                ThreadPool& pool) const
{
    plan.count = 1;
    plan.k = one.k;
    plan.answers_on_device = true;
    const auto plan_of = [&](std::size_t, std::size_t, std::size_t) { return plan; };
    search_round(one, Round(one), plan_of, enqueue, answer, pool);
}

}  // namespace pgwarp::cuda
