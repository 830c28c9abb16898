// The searcher of vectors on the device. A chunk of queries is signed, the rows that match them on most functions are
// found, and these are ranked by their distances.
#include <algorithm>

#include "device/searcher.h"
#include "device/wait.h"
#include "matchcount/dense_count.h"
#include "matchcount/dense_tiles.h"
#include "matchcount/vector_mirror.h"
#include "matchcount/vector_search.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "methods/matchcount/matchcount.h"
#include "passes/scan.h"

namespace pgwarp::cuda
{

namespace
{

using matchcount::CountedRows;

constexpr std::size_t most_queries = matchcount::tile_queries;  // of a chunk
constexpr std::size_t most_chunk_bytes = std::size_t{1} << 30;  // unless it has one query
constexpr std::size_t most_written_in_place = 4096;             // results that kernels write to page-locked memory

// What a search returns of its candidates.
enum class Wanted { nearest, estimates };

struct VectorPlan : ChunkPlan {
    Wanted results = Wanted::nearest;
    std::uint32_t candidates = 0;  // of a query
};

// Candidates that the host sorts are written to the answers instead.
struct VectorWorkspace {
    std::uint8_t* signatures = nullptr;  // [count][functions]
    CountedRows counted;                 // [count][candidates]
    double* values = nullptr;            // [count][candidates]
    std::byte* counting = nullptr;
};

VectorWorkspace lay_out(const VectorMirror& mirror, const VectorPlan& plan, const Context& context, Carver& memory)
{
    const matchcount::DenseRows rows = mirror.signatures();
    const std::size_t places = std::size_t{plan.count} * plan.candidates;
    VectorWorkspace workspace;
    workspace.signatures = memory.take<std::uint8_t>(std::size_t{plan.count} * rows.functions);
    workspace.counted.counts = memory.take<std::uint32_t>(places);
    if (plan.ordered) {
        workspace.counted.rows = memory.take<std::uint32_t>(places);
        workspace.counted.found = memory.take<std::uint32_t>(plan.count);
        if (plan.results == Wanted::nearest) workspace.values = memory.take<double>(places);
    }
    workspace.counting =
        memory.take<std::byte>(top_dense_counts_workspace_bytes(rows, plan.count, plan.candidates, context));
    return workspace;
}

class DeviceVectorSearcher : public DeviceSearcher
{
public:
    DeviceVectorSearcher(Context& context, const IndexShape& shape, const ParameterList& options,
                         std::span<const ArrayShape> arrays)
        : DeviceSearcher(context, shape.dimensions, "matchcount workspace"), mirror_(context, shape, options, arrays)
    {
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const DevicePatience patience(build_patience);
        mirror_.write(array, offset, bytes);
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return mirror_.device_bytes(); }
    Residence residence() const override { return {context().device(), false, mirror_.device_bytes()}; }
    ResultKind result_kind() const override { return promise_of_vectors(is_cosine()).kind; }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric(), 0, 1); }
    // In float operations of the CPU: the device does some thousand in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override { return 1e-3 * compared(batch); }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set(pgwarp::matchcount::parameter_candidates, static_cast<std::int64_t>(candidates_of(batch)));
        return settings;
    }

protected:
    std::size_t row_count() const override { return mirror_.rows(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const auto ranked = static_cast<double>(batch.count * candidates_of(batch));
        return patience_for(2 * compared(batch), 0, ranked * static_cast<double>(dimensions()) * canonical_operations);
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override;
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override;

private:
    Metric metric() const { return mirror_.vectors().metric; }
    bool is_cosine() const { return metric() == Metric::cosine; }
    std::size_t candidates_of(const SearchBatch& batch) const
    {
        return pgwarp::matchcount::candidates_of(batch, mirror_.rows());
    }
    // An estimate of the values and elements that a search compares.
    double compared(const SearchBatch& batch) const
    {
        const double counted = static_cast<double>(mirror_.rows()) * mirror_.signatures().functions;
        const auto ranked = static_cast<double>(candidates_of(batch) * dimensions());
        return static_cast<double>(batch.count) * (counted + ranked);
    }
    VectorPlan plan_search(const SearchBatch& batch, Wanted results, std::size_t count, std::size_t room) const;
    void enqueue_search(const VectorPlan& plan, const Chunk& chunk, const Tombstones* dead) const;

    VectorMirror mirror_;
};

// The host sorts more candidates than a block can.
VectorPlan DeviceVectorSearcher::plan_search(const SearchBatch& batch, Wanted results, std::size_t count,
                                             std::size_t room) const
{
    VectorPlan plan;
    plan.results = results;
    plan.k = std::min(batch.k, mirror_.rows());
    plan.candidates = results == Wanted::nearest ? static_cast<std::uint32_t>(candidates_of(batch)) : plan.k;
    plan.ordered = results == Wanted::estimates || matchcount::ranks_on_device(plan.candidates, context());
    if (!plan.ordered) plan.k = plan.candidates;
    plan.count = static_cast<std::uint32_t>(std::min(count, most_queries));
    const std::size_t most = std::min(most_chunk_bytes, room / 2);
    const auto workspace_bytes = [&] {
        return carved_bytes([&](Carver& memory) { lay_out(mirror_, plan, context(), memory); });
    };
    while ((plan.workspace = workspace_bytes()) > most && plan.count > 1) plan.count = (plan.count + 1) / 2;
    plan.answers_on_device = !plan.ordered || std::size_t{plan.count} * plan.k > most_written_in_place;
    return plan;
}

void DeviceVectorSearcher::enqueue_search(const VectorPlan& plan, const Chunk& chunk, const Tombstones* dead) const
{
    Carver memory(chunk.workspace);
    VectorWorkspace workspace = lay_out(mirror_, plan, context(), memory);
    if (!plan.ordered) {
        workspace.counted.rows = chunk.answers.rows;
        workspace.counted.found = chunk.answers.found;
        workspace.values = chunk.answers.values;
    }
    const matchcount::DenseRows rows = mirror_.signatures();
    sign_vectors(mirror_.hashes(), chunk.queries, plan.count, workspace.signatures, chunk.stream);
    top_dense_counts(rows, {plan.count, workspace.signatures, dead != nullptr ? dead->half_words() : nullptr},
                     plan.candidates, workspace.counted, workspace.counting, context(), chunk.stream);
    if (plan.results == Wanted::estimates)
        return estimate_similarities(workspace.counted, plan.count, plan.k, rows.functions, chunk.answers,
                                     chunk.stream);
    const matchcount::Candidates candidates{chunk.queries, plan.count, plan.candidates, workspace.counted.rows,
                                            workspace.counted.found};
    value_candidates(mirror_.vectors(), candidates, workspace.values, chunk.stream);
    if (plan.ordered) rank_candidates(candidates, workspace.values, plan.k, chunk.answers, chunk.stream);
}

void DeviceVectorSearcher::search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                          ThreadPool& pool) const
{
    const bool estimates = batch.settings.get(setting_estimate, 0) != 0;
    const Round round(batch);
    const std::size_t candidates = candidates_of(batch);
    if (!estimates && candidates == mirror_.rows() &&
        !matchcount::ranks_on_device(static_cast<std::uint32_t>(candidates), context()))
        return search_all_rows(batch, round, results, pool);
    const auto plan_of = [&](std::size_t, std::size_t count, std::size_t room) {
        return plan_search(batch, estimates ? Wanted::estimates : Wanted::nearest, count, room);
    };
    const auto enqueue = [&](const VectorPlan& plan, const Chunk& chunk) { enqueue_search(plan, chunk, dead); };
    search_round(batch, round, plan_of, enqueue, results, pool);
}

void DeviceVectorSearcher::continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead,
                                          Results& answer, ThreadPool& pool) const
{
    const matchcount::RankedVectors vectors = mirror_.vectors();
    ScanJob job;
    job.metric = vectors.metric;
    job.vectors = vectors.vectors;
    job.rows = mirror_.rows();
    job.dimensions = vectors.dimensions;
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

}  // namespace

std::unique_ptr<Searcher> make_vector_searcher(Context& context, const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceVectorSearcher>(context, shape, options, arrays);
}

}  // namespace pgwarp::cuda
