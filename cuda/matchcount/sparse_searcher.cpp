// The searcher of sparse vectors on a device. The host keeps the CPU's index beside: it answers what the device does
// not serve, which are continuations, many results, long queries, and queries that the device could not prove.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "matchcount/sparse_search.h"
#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/device_wait.h"
#include "methods/matchcount/sparse_search.h"
#include "methods/rows/stored_lists.h"
#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

using pgwarp::matchcount::SparseIndex;
using pgwarp::matchcount::SparseQuery;

SparseView view_of(const RowView& rows, std::size_t row)
{
    const std::span<const std::uint32_t> words = rows.list(row);
    return {words.data(), rows.list_weights(row).data(), words.size()};
}

class DeviceSparseSearcher : public DeviceSearcher
{
public:
    DeviceSparseSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays,
                         const matchcount::SparseTuning& tuning, const SparseSearchTuning& search_tuning)
        : DeviceSearcher(context, 0, "matchcount workspace"),
          metric_(static_cast<Metric>(shape.metric)),
          tuning_(tuning),
          search_tuning_(search_tuning),
          stored_(shape, arrays),
          stream_(context.lease(Priority::build))
    {
        const ArrayShape* words = find_array(arrays, array_list_words);
        const ArrayShape* offsets = find_array(arrays, array_list_offsets);
        if (words == nullptr || offsets == nullptr) return;
        // An element gets a posting and the number of its value.
        expected_host_bytes_ = words->rows * (sizeof(std::uint32_t) + sizeof(std::int16_t));
        expected_bytes_ = SparseMirror::expected_bytes(offsets->rows, words->rows);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_.write(array, offset, bytes)) throw BadRequest("unknown array of sparse vectors");
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context().device()), "choosing the device");
        stored_.finish_load();
        index_.emplace(metric_, stored_.rows(), pool);
        mirror_.emplace(*index_, tuning_, context().pool(), stream_, pool);
    }
    std::uint64_t memory_bytes() const override
    {
        const std::uint64_t host = index_ ? index_->memory_bytes() : expected_host_bytes_;
        return stored_.memory_bytes() + host + device_bytes();
    }
    Residence residence() const override { return {context().device(), false, device_bytes()}; }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        const SparseView vector = view_of(query, 0);
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = sparse_distance(metric_, vector, view_of(rows, i));
    }
    bool compares_certain_rows() const override { return true; }

    // In float operations of the CPU: the device does some thousand products of columns in the time of one.
    double search_cost(const SearchBatch& batch) const override
    {
        const auto rows = static_cast<double>(index_->rows());
        if (!serves(batch)) return rows * static_cast<double>(batch.count + batch.lists.word_count()) / 8;
        return static_cast<double>(batch.count) * rows * mirror_->form().columns() / 1e4;
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    void set_tuning(const SparseSearchTuning& tuning) { search_tuning_ = tuning; }
    SparseStatistics statistics() const
    {
        return {queries_.load(), filtered_again_.load(), by_host_.load(), std::chrono::nanoseconds(writing_.load())};
    }

protected:
    std::size_t row_count() const override { return index_->rows(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double pairs = static_cast<double>(batch.count + 1) * static_cast<double>(index_->rows());
        return patience_for(pairs * (2.0 * mirror_->form().columns() + 100));
    }
    // The form: the penalties of positions, dead rows marked.
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const override
    {
        if (!mirror_->in_range()) return {};
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        const std::size_t bytes = mirror_->scored().padded_positions * sizeof(float);
        dead.form = DeviceArray<std::byte>(context().pool(), bytes, "penalties of dead rows", stream);
        mark_dead(mirror_->scored(), dead.words.data(), reinterpret_cast<float*>(dead.form.data()), stream);
        stream.stream().synchronize();
        return dead;
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override;
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones*, Results& answer,
                        ThreadPool& pool) const override
    {
        SparseQuery query = query_of(one, 0);
        query.after = after;
        answer[0] = search_sparse(*index_, query, pool);
    }
    void search_lists(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      const Tombstones*, Results& results, ThreadPool& pool) const override;

private:
    // Whether the device serves some queries of the batch.
    bool serves(const SearchBatch& batch) const
    {
        return mirror_->in_range() && std::min<std::size_t>(batch.k, index_->rows()) <= matchcount::most_ranked_k;
    }
    std::uint64_t device_bytes() const { return mirror_ ? mirror_->device_bytes() : expected_bytes_; }
    SparseQuery query_of(const SearchBatch& batch, std::size_t number) const
    {
        SparseQuery query;
        query.vector = view_of(batch.lists, number);
        query.k = batch.k;
        query.dead = batch.dead;
        query.within = within_of(batch.settings);
        query.cancel = batch.cancel;
        return query;
    }
    void search_on_host(const SearchBatch& batch, std::span<const std::uint32_t> numbers, Results& results,
                        ThreadPool& pool) const;

    Metric metric_;
    matchcount::SparseTuning tuning_;
    SparseSearchTuning search_tuning_;
    std::uint64_t expected_host_bytes_ = 0;  // of lists to come
    std::uint64_t expected_bytes_ = 0;       // of device memory
    StoredLists stored_;
    std::optional<SparseIndex> index_;  // after loading, like the mirror
    Context::Lease stream_;             // device arrays are made and freed in its order
    std::optional<SparseMirror> mirror_;
    mutable std::atomic<std::uint64_t> queries_{0};
    mutable std::atomic<std::uint64_t> filtered_again_{0};
    mutable std::atomic<std::uint64_t> by_host_{0};
    mutable std::atomic<std::int64_t> writing_{0};  // nanoseconds
};

// Threads share the queries, or the rows of a query where there are few.
void DeviceSparseSearcher::search_on_host(const SearchBatch& batch, std::span<const std::uint32_t> numbers,
                                          Results& results, ThreadPool& pool) const
{
    by_host_ += numbers.size();
    if (numbers.size() < pool.threads()) {
        for (const std::uint32_t q : numbers) results[q] = search_sparse(*index_, query_of(batch, q), pool);
        return;
    }
    pool.parallel_for(numbers.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            batch.check_cancel();
            results[numbers[i]] = search_sparse(*index_, query_of(batch, numbers[i]), caller_alone());
        }
    });
}

void DeviceSparseSearcher::search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                          ThreadPool& pool) const
{
    if (!serves(batch)) {
        std::vector<std::uint32_t> all(batch.count);
        std::iota(all.begin(), all.end(), 0U);
        return search_on_host(batch, all, results, pool);
    }
    const Round round(batch);
    const SparseSession session(context(), *mirror_, search_tuning_, batch, round, dead);
    SparseStatistics statistics;
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t room) {
        return session.plan(first, count, room);
    };
    const auto enqueue = [&](const SparsePlan& plan, const Chunk& chunk) {
        session.search(plan, chunk, pool, statistics);
    };
    const Unfinished unfinished = search_round(batch, round, plan_of, enqueue, results, pool);
    queries_ += statistics.queries;
    filtered_again_ += statistics.filtered_again;
    writing_ += statistics.writing.count();
    search_on_host(batch, unfinished.unanswered, results, pool);
    const double within = within_of(batch.settings);
    if (within == no_bound) return;
    for (auto& result : results)
        std::erase_if(result, [within](const RowResult& found) { return !(found.distance <= within); });
}

void DeviceSparseSearcher::search_lists(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                        const Tombstones*, Results& results, ThreadPool& pool) const
{
    const double within = within_of(batch.settings);
    for (std::size_t q = 0; q < batch.count; ++q) {
        const SparseView query = view_of(batch.lists, q);
        const auto value = [&](std::uint32_t row) { return sparse_distance(metric_, query, index_->row(row)); };
        results[q] = value_certain_rows(batch, rows[q], after, value, pool);
        // Rows without a distance are no results.
        std::erase_if(results[q], [within](const RowResult& found) { return !(found.distance <= within); });
    }
}

}  // namespace

std::unique_ptr<Searcher> make_sparse_searcher(Context& context, const IndexShape& shape,
                                               std::span<const ArrayShape> arrays,
                                               const matchcount::SparseTuning& tuning,
                                               const SparseSearchTuning& search_tuning)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceSparseSearcher>(context, shape, arrays, tuning, search_tuning);
}

void set_sparse_tuning(Searcher& searcher, const SparseSearchTuning& tuning)
{
    dynamic_cast<DeviceSparseSearcher&>(searcher).set_tuning(tuning);
}

SparseStatistics sparse_statistics(const Searcher& searcher)
{
    return dynamic_cast<const DeviceSparseSearcher&>(searcher).statistics();
}

}  // namespace pgwarp::cuda
