// The searcher of sets and attributes on the device, by counts of common parts.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "matchcount/part_mirror.h"
#include "matchcount/part_search.h"
#include "matchcount/part_session.h"
#include "methods/arrays.h"
#include "methods/device_wait.h"
#include "methods/matchcount/part_index.h"
#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"
#include "protocol/part_rows.h"
#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

using matchcount::Item;
using pgwarp::matchcount::CountedRow;
using Results = std::vector<std::vector<RowResult>>;

constexpr std::size_t most_queries = 4096;                       // of a chunk
constexpr std::size_t most_results = std::size_t{4} << 20;       // of a chunk
constexpr std::size_t most_chunk_bytes = std::size_t{1} << 30;   // unless it has one query
constexpr std::uint64_t most_postings = std::uint64_t{1} << 36;  // of a chunk: some 40 ms of an H100
constexpr double most_count = 1U << 31;                          // no count reaches it

// A query as it is counted.
struct CountedQuery {
    std::uint32_t number = 0;  // in the batch
    std::vector<Item> items;
    std::uint32_t bound = 0;  // of counts
    std::uint64_t postings = 0;

    // Bytes of the counters, by which chunks are alike.
    int width() const { return bound < 1U << 8 ? 1 : bound < 1U << 16 ? 2 : 4; }
};

// The least count of rows within this distance; 0: all rows are.
std::uint32_t least_count(double within)
{
    return within < 0 ? static_cast<std::uint32_t>(std::ceil(-within)) : 0;
}

class DevicePartSearcher : public Searcher
{
public:
    DevicePartSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : context_(context),
          element_(shape.element),
          stored_(std::in_place, shape, arrays),
          stream_(context.lease(Priority::build)),
          workspaces_(context, "matchcount workspace")
    {
        // A part gets a keyword, and a posting of 16 bits.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * sizeof(std::uint32_t);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of sets");
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context_.device()), "choosing the device");
        stored_->finish_load();
        pgwarp::matchcount::RankedRows ranked = pgwarp::matchcount::rank_parts(stored_->rows(), element_, pool);
        stored_.reset();
        mirror_.emplace(std::move(ranked), context_.pool(), stream_);
    }
    std::uint64_t memory_bytes() const override
    {
        if (mirror_) return mirror_->host_bytes() + mirror_->device_bytes();
        // A load without room has neither.
        return (stored_ ? stored_->memory_bytes() : 0) + expected_bytes_;
    }
    Residence residence() const override
    {
        return {context_.device(), false, mirror_ ? mirror_->device_bytes() : expected_bytes_};
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i)
            out[i] = pgwarp::matchcount::distance_of_parts(element_, Metric::overlap, query.list(0), rows.list(i));
    }

    void search(const SearchBatch& batch, Results& results, ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;
    // In float operations of the CPU: the device counts a few thousand postings in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const auto compared = static_cast<double>(rows()) + static_cast<double>(mirror_->lists().postings()) / 16;
        return std::min(1e7, static_cast<double>(batch.count) * compared / 1e3);
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    std::uint32_t rows() const { return mirror_->lists().rows(); }
    // Whether there is anything to search.
    bool has_answers(const SearchBatch& batch) const
    {
        return rows() > 0 && batch.k > 0 && batch.count > 0 && within_of(batch.settings) > -most_count;
    }
    double postings_of(const SearchBatch& batch) const
    {
        return static_cast<double>(batch.count) * static_cast<double>(mirror_->lists().postings() + rows());
    }
    const std::uint32_t* dead_rows(const SearchBatch& batch, OfBitmap<Tombstones>::Use& use) const;
    std::vector<CountedQuery> count_queries(const SearchBatch& batch, ThreadPool& pool) const;
    CountedQuery counted_query(const SearchBatch& batch, std::uint32_t number) const;
    // `unspent`: bytes of device memory.
    PartChunk next_chunk(std::span<const CountedQuery> queries, const SearchBatch& batch, const PartSession& session,
                         std::size_t most, std::uint64_t unspent) const;
    void search_chunk(std::span<const CountedQuery> queries, const PartChunk& chunk, const SearchBatch& batch,
                      PartSession& session, Workspace& workspace, Results& results, ThreadPool& pool) const;
    // All rows of at least the bound's count, and at least 1, of the batch's first query.
    std::vector<CountedRow> find_all(const SearchBatch& batch, std::uint32_t least) const;
    void drop_unused(const SearchBatch& batch) const;
    // Returns work(), the second time after idle memory is freed.
    template <class Work>
    auto with_memory(const SearchBatch& batch, const Work& work) const
    {
        try {
            return work();
        } catch (const std::bad_alloc&) {
            drop_unused(batch);
        }
        return work();
    }

    Context& context_;
    ElementType element_;
    std::uint64_t expected_bytes_ = 0;   // of device memory
    std::optional<StoredLists> stored_;  // until they are loaded
    Context::Lease stream_;              // device arrays are made and freed in its order
    std::optional<PartMirror> mirror_;   // afterwards
    mutable OfBitmap<Tombstones> dead_;
    mutable Workspaces workspaces_;
};

const std::uint32_t* DevicePartSearcher::dead_rows(const SearchBatch& batch, OfBitmap<Tombstones>::Use& use) const
{
    if (batch.dead.empty()) return nullptr;
    use = with_memory(batch, [&] {
        return dead_.get(batch.dead_version,
                         [&] { return send_dead_rows(batch.dead, rows(), context_.pool(), stream_); });
    });
    return use->half_words();
}

void DevicePartSearcher::drop_unused(const SearchBatch& batch) const
{
    workspaces_.drop_idle();
    dead_.drop_before(batch.dead_version);
}

CountedQuery DevicePartSearcher::counted_query(const SearchBatch& batch, std::uint32_t number) const
{
    CountedQuery query;
    query.number = number;
    query.items = pgwarp::matchcount::items_of(mirror_->dictionary(), element_, batch.lists.list(number));
    query.bound = count_bound(mirror_->lists(), query.items);
    query.postings = mirror_->postings(query.items);
    return query;
}

std::vector<CountedQuery> DevicePartSearcher::count_queries(const SearchBatch& batch, ThreadPool& pool) const
{
    std::vector<CountedQuery> queries(batch.count);
    pool.parallel_for(batch.count, 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) queries[i] = counted_query(batch, static_cast<std::uint32_t>(i));
    });
    std::stable_sort(queries.begin(), queries.end(),
                     [](const CountedQuery& a, const CountedQuery& b) { return a.width() < b.width(); });
    return queries;
}

PartChunk DevicePartSearcher::next_chunk(std::span<const CountedQuery> queries, const SearchBatch& batch,
                                         const PartSession& session, std::size_t most, std::uint64_t unspent) const
{
    const std::uint32_t k = std::min(batch.k, rows());
    most = std::min({most, most_queries, most_results / k + 1});
    for (;;) {
        PartChunk chunk;
        chunk.k = k;
        chunk.least = least_count(within_of(batch.settings));
        std::uint64_t postings = 0;
        for (const CountedQuery& query : queries) {
            postings += query.postings;
            const bool full = chunk.count() >= most || postings > most_postings;
            if (chunk.count() > 0 && (full || query.width() != queries[0].width())) break;
            chunk.add(query.items, query.bound, query.postings);
        }
        const std::uint64_t room = std::min<std::uint64_t>(most_chunk_bytes, unspent / 2);
        if (chunk.count() == 1 || session.workspace_bytes(chunk) <= room) return chunk;
        most = (chunk.count() + 1) / 2;
    }
}

void DevicePartSearcher::search_chunk(std::span<const CountedQuery> queries, const PartChunk& chunk,
                                      const SearchBatch& batch, PartSession& session, Workspace& workspace,
                                      Results& results, ThreadPool& pool) const
{
    session.find_top(chunk, workspace);
    run_overlapped(batch.overlapped_work);
    wait_for(workspace.stream(), "waiting for answers");
    const matchcount::CountedRows& answers = session.answers();
    pool.parallel_for(chunk.count(), 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::vector<RowResult>& result = results[queries[i].number];
            result.resize(answers.found[i]);
            for (std::size_t at = 0; at < result.size(); ++at)
                result[at] = {overlap_distance(answers.counts[i * chunk.k + at]), answers.rows[i * chunk.k + at]};
        }
    });
}

// Where memory is short, idle memory is freed and a chunk of half the queries is tried.
void DevicePartSearcher::search(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (!has_answers(batch)) return;
    const DevicePatience patience(patience_for(10 * postings_of(batch)));
    check(cudaSetDevice(context_.device()), "choosing the device");
    OfBitmap<Tombstones>::Use dead;
    const matchcount::KeywordListsView lists = mirror_->lists().view();
    PartSession session(context_, lists, dead_rows(batch, dead));
    const std::vector<CountedQuery> all = count_queries(batch, pool);
    std::span<const CountedQuery> queries = all;
    std::size_t most = queries.size();
    bool tried_alone = false;
    while (!queries.empty()) {
        batch.check_cancel();
        const bool had_begun = meanwhile_begun(batch);
        PartChunk chunk;
        try {
            const Workspaces::Lease workspace(workspaces_);
            chunk = next_chunk(queries, batch, session, most, context_.pool().unspent_with(workspace->device_bytes()));
            search_chunk(queries, chunk, batch, session, *workspace, results, pool);
        } catch (const std::bad_alloc&) {
            if (tried_alone || meanwhile_begun(batch) != had_begun) throw;
            drop_unused(batch);
            tried_alone = chunk.count() <= 1;
            most = std::max<std::size_t>(chunk.count() / 2, 1);
            continue;
        }
        queries = queries.subspan(chunk.count());
    }
}

std::vector<CountedRow> DevicePartSearcher::find_all(const SearchBatch& batch, std::uint32_t least) const
{
    OfBitmap<Tombstones>::Use dead;
    const matchcount::KeywordListsView lists = mirror_->lists().view();
    PartSession session(context_, lists, dead_rows(batch, dead));
    const CountedQuery query = counted_query(batch, 0);
    PartChunk chunk;
    chunk.k = 1;
    chunk.least = least;
    chunk.add(query.items, query.bound, query.postings);
    const Workspaces::Lease workspace(workspaces_);
    return session.find_all(chunk, *workspace);
}

// Rows behind a row are found among all that match, and then among the others.
void DevicePartSearcher::search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                                      std::vector<RowResult>& results, ThreadPool& pool) const
{
    SearchBatch one = batch;
    one.count = 1;
    one.lists = batch.lists.row(0);
    if (after_distance == -HUGE_VAL) {
        Results answer;
        search(one, answer, pool);
        results = std::move(answer[0]);
        return;
    }
    results.clear();
    if (!has_answers(one)) return;
    const DevicePatience patience(patience_for(10 * postings_of(one)));
    check(cudaSetDevice(context_.device()), "choosing the device");
    one.check_cancel();
    const std::uint32_t least = least_count(within_of(one.settings));
    const RowResult after{after_distance, after_row};
    FirstRows first(one.k);
    std::vector<std::uint64_t> matched((rows() + 63) / 64);
    for (const CountedRow& row : with_memory(one, [&] { return find_all(one, least); })) {
        set_bit(matched, row.row);
        const RowResult result{overlap_distance(row.count), row.row};
        if (comes_before(after, result)) first.offer(result);
    }
    for (std::uint32_t row = 0; row < rows() && least == 0 && !first.full(); ++row) {
        const RowResult result{overlap_distance(0), row};
        if (!bit_is_set(matched, row) && !bit_is_set(one.dead, row) && comes_before(after, result)) first.offer(result);
    }
    results = first.take_sorted();
}

}  // namespace

std::unique_ptr<Searcher> make_part_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DevicePartSearcher>(context, shape, arrays);
}

}  // namespace pgwarp::cuda
