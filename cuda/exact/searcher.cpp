// The searcher of exact search on the device: rows as floats, small searches and passes.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "exact/exact.h"
#include "exact/small_search.h"
#include "exact/unit_rows.h"
#include "methods.h"
#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "methods/exact/exact.h"
#include "numeric/distance.h"
#include "passes/dead_rows.h"
#include "passes/pace.h"
#include "rows/certain_rows_searcher.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t staging_bytes = std::size_t{8} << 20;

class DeviceExactSearcher : public rows::CertainRowsSearcher
{
public:
    DeviceExactSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : CertainRowsSearcher(context, shape.dimensions, "exact workspace"),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          in_halves_(keeps_halves(shape)),
          loading_(context.lease(Priority::build))
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
        // Halves become floats while they are loaded.
        const std::size_t growth = in_halves_ ? sizeof(float) / sizeof(half_bits) : 1;
        const std::size_t stored_bytes = vectors_.bytes() / growth;
        if (offset > stored_bytes || bytes.size() > stored_bytes - offset) {
            throw BadRequest("past the end of an array");
        }
        if (in_halves_ && (offset % sizeof(half_bits) != 0 || bytes.size() % sizeof(half_bits) != 0)) {
            throw BadRequest("part of an element");
        }
        const DevicePatience patience(build_patience);
        const Context::Lease stream = context().lease(Priority::build);
        const Workspaces::Lease workspace(workspaces());
        std::byte* const staging = workspace->pinned(std::min(bytes.size() * growth, staging_bytes));
        auto* to = reinterpret_cast<std::byte*>(vectors_.data()) + offset * growth;
        const std::size_t step = staging_bytes / growth;
        for (std::size_t done = 0; done < bytes.size(); done += step) {
            const std::size_t piece = std::min(step, bytes.size() - done);
            stage(bytes.subspan(done, piece), staging);
            check(cudaMemcpyAsync(to + done * growth, staging, piece * growth, cudaMemcpyHostToDevice, stream),
                  "loading vectors");
            stream.stream().synchronize();
        }
    }

    bool copy_rows(const Searcher& from, std::uint64_t first, std::uint64_t count, std::uint64_t to) override
    {
        const auto* other = dynamic_cast<const DeviceExactSearcher*>(&from);
        if (other == nullptr || &other->context() != &context() || other->dimensions_ != dimensions_) return false;
        if (first + count > other->count_ || to + count > count_) throw BadRequest("past the end of an array");
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context().device()), "choosing the device");
        check(cudaMemcpyAsync(vectors_.data() + to * dimensions_, other->vectors_.data() + first * dimensions_,
                              count * dimensions_ * sizeof(float), cudaMemcpyDeviceToDevice, loading_),
              "copying vectors");
        // The caller may free the other searcher after the copy.
        loading_.stream().synchronize();
        return true;
    }

    void finish_load(ThreadPool&) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context().device()), "choosing the device");
        if (in_halves_ && metric_ == Metric::cosine) make_unit_rows(vectors_.data(), count_, dimensions_, loading_);
        rows_ = make_exact_rows(context().pool(), metric_, vectors_.data(), count_, dimensions_, loading_);
        loading_.stream().synchronize();
    }

    std::uint64_t memory_bytes() const override { return vectors_.bytes() + rows_.scored.bytes() + filter_bytes(); }
    Residence residence() const override { return {context().device(), false, memory_bytes()}; }
    ResultKind result_kind() const override
    {
        return metric_ == Metric::cosine ? ResultKind::lower_bound : ResultKind::exact;
    }
    double bound_width(const float*) const override
    {
        return metric_ == Metric::cosine ? pgwarp::bound_width(metric_, 0, 1) : 0;
    }

    double search_cost(const SearchBatch& batch) const override;
    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    ExactStatistics statistics() const
    {
        return {queries_.load(std::memory_order_relaxed), filtered_again_.load(std::memory_order_relaxed),
                tied_.load(std::memory_order_relaxed), scanned_.load(std::memory_order_relaxed)};
    }

protected:
    std::optional<rows::CertainRows> certain_rows() const override
    {
        rows::CertainRows rows;
        rows.resident.metric = metric_;
        rows.resident.dimensions = dimensions_;
        rows.resident.full = vectors_.data();
        return rows;
    }
    const ScoredRows* scored_rows() const override { return rows_.scored.halves.size() > 0 ? &rows_.scored : nullptr; }
    std::size_t row_count() const override { return count_; }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        constexpr double sorting_cost = 1000;  // float operations to sort one row among all
        const auto asked = static_cast<double>(batch.count);
        return patience_for(asked * count_ * (2.0 * dimensions_ + sorting_cost), 0,
                            paced_operations(asked, count_, dimensions_));
    }
    // The form: the penalties of positions, dead rows marked.
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const override
    {
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        const std::size_t bytes = rows_.scored.padded_positions * sizeof(float);
        dead.form = DeviceArray<std::byte>(context().pool(), bytes, "penalties of dead rows", stream);
        mark_dead(rows_.scored, dead.words.data(), reinterpret_cast<float*>(dead.form.data()), stream);
        stream.stream().synchronize();
        return dead;
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override;
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override;

private:
    void stage(std::span<const std::byte> stored, std::byte* out) const
    {
        if (!in_halves_) {
            std::memcpy(out, stored.data(), stored.size());
            return;
        }
        from_half(reinterpret_cast<const half_bits*>(stored.data()), stored.size() / sizeof(half_bits),
                  reinterpret_cast<float*>(out));
    }
    void search_many(const SearchBatch& batch, const Round& round, const DeadRows& dead, Results& results,
                     ThreadPool& pool) const;
    void count(const ExactStatistics& statistics) const;

    Metric metric_;
    std::uint32_t dimensions_;
    bool in_halves_;  // halves are loaded; resident are floats, made unit vectors for cosine
    std::uint32_t count_ = 0;
    Context::Lease loading_;  // device arrays are freed in the order of its stream
    DeviceArray<float> vectors_;
    ExactRows rows_;
    mutable std::atomic<std::uint64_t> queries_{0};
    mutable std::atomic<std::uint64_t> filtered_again_{0};
    mutable std::atomic<std::uint64_t> tied_{0};
    mutable std::atomic<std::uint64_t> scanned_{0};
};

// In float operations of the CPU, by which the engine decides which batches its I/O threads search themselves: batches
// of some hundred queries, and no work that takes the device a millisecond.
double DeviceExactSearcher::search_cost(const SearchBatch& batch) const
{
    constexpr double batched = 8e3;
    constexpr double too_long = 1e7;
    if (std::min(batch.k, count_) > largest_ranked_k) return too_long;
    const double bytes = double{1} * count_ * dimensions_ * (metric_ == Metric::l1 ? sizeof(float) : sizeof(__half));
    return bytes > 4e9 ? too_long : batched;
}

void DeviceExactSearcher::search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                         ThreadPool& pool) const
{
    const DeadRows gone = dead != nullptr ? DeadRows{dead->words.data(), dead->form_as<float>()} : DeadRows{};
    const std::uint32_t k = std::min(batch.k, count_);
    if (!serves_small(rows_, batch.count, k)) return search_many(batch, Round(batch), gone, results, pool);
    const auto plan_of = [&](std::size_t, std::size_t queries, std::size_t) {
        return plan_small_search(context(), rows_, queries, k);
    };
    const auto enqueue = [&](const SmallPlan& plan, const Chunk& chunk) {
        enqueue_small_search(context(), rows_, plan, chunk, gone.penalties);
    };
    std::vector<std::uint32_t> unproven = search_round(batch, Round(batch), plan_of, enqueue, results, pool).unanswered;
    queries_.fetch_add(batch.count - unproven.size(), std::memory_order_relaxed);
    if (!unproven.empty()) search_many(batch, Round(batch, std::move(unproven)), gone, results, pool);
}

void DeviceExactSearcher::search_many(const SearchBatch& batch, const Round& round, const DeadRows& dead,
                                      Results& results, ThreadPool& pool) const
{
    // Results of one chunk: some 128 MiB.
    constexpr std::size_t most_results = std::size_t{10} << 20;
    const auto plan_of = [&](std::size_t, std::size_t queries, std::size_t) {
        ChunkPlan plan;
        plan.k = std::min(batch.k, count_);
        plan.count = static_cast<std::uint32_t>(std::min(queries, std::max<std::size_t>(1, most_results / plan.k)));
        plan.answers_on_device = true;
        return plan;
    };
    const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
        ExactStatistics statistics;
        search_exactly(context(), rows_, chunk.queries, plan.count, dead,
                       {chunk.answers.values, chunk.answers.rows, chunk.answers.found, plan.k}, statistics,
                       batch.cancel, chunk.stream);
        count(statistics);
    };
    search_round(batch, round, plan_of, enqueue, results, pool);
}

void DeviceExactSearcher::count(const ExactStatistics& statistics) const
{
    queries_.fetch_add(statistics.queries, std::memory_order_relaxed);
    filtered_again_.fetch_add(statistics.filtered_again, std::memory_order_relaxed);
    tied_.fetch_add(statistics.tied, std::memory_order_relaxed);
    scanned_.fetch_add(statistics.scanned, std::memory_order_relaxed);
}

void DeviceExactSearcher::continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead,
                                         Results& answer, ThreadPool& pool) const
{
    ScanJob job;
    job.metric = metric_;
    job.vectors = vectors_.data();
    job.rows = count_;
    job.dimensions = dimensions_;
    job.dead = dead != nullptr ? dead->words.data() : nullptr;
    job.cursor = {after.distance, after.row};
    const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
        job.query = chunk.queries;
        job.answer = {chunk.answers.values, chunk.answers.rows, chunk.answers.found, plan.k};
        scan_rows(job, chunk.workspace, chunk.stream);
    };
    ChunkPlan plan;
    plan.workspace = scan_workspace_bytes(job.rows);
    search_one(one, plan, enqueue, answer, pool);
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
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceExactSearcher>(context, shape, arrays);
}

ExactStatistics exact_statistics(const Searcher& searcher)
{
    return dynamic_cast<const DeviceExactSearcher&>(searcher).statistics();
}

// The CPU's builder, which only stores rows, and a searcher on the device with the most free memory.
const MethodFactory& exact_method()
{
    static const MethodFactory factory{.method = Method::exact,
                                       .make_builder = &make_exact_builder,
                                       .make_searcher = &searcher_with_most_room,
                                       .exact_parts = &factory};
    return factory;
}

}  // namespace pgwarp::cuda
