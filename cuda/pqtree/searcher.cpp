// The searcher of the product quantization tree on the device: the effort of a batch, and searches again of queries
// that found too few rows.
#include <algorithm>

#include "device/searcher.h"
#include "device/wait.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "pqtree/device_search.h"
#include "pqtree/pqtree.h"
#include "rows/forms.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

class TreeSearcher : public DeviceSearcher
{
public:
    TreeSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                 Context& context, DeviceArray<std::uint8_t> codes)
        : DeviceSearcher(context, shape.dimensions, "pqtree workspace"),
          mirror_(context, shape, options, arrays, std::move(codes))
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
        return {mirror_.context().device(), mirror_.is_split(), mirror_.device_bytes()};
    }
    ResultKind result_kind() const override
    {
        if (mirror_.options().keeps_full()) return promise_of_vectors(mirror_.metric() == Metric::cosine).kind;
        return mirror_.options().keeps_half() ? ResultKind::lower_bound : ResultKind::approximate;
    }
    double bound_width(const float* query) const override
    {
        if (mirror_.options().keeps_full()) return pgwarp::bound_width(mirror_.metric(), 0, 1);
        if (!mirror_.options().keeps_half()) return 0;
        return pgwarp::bound_width(mirror_.metric(), mirror_.half_error(), canonical_norm(query, dimensions()));
    }
    // In float operations of the CPU: the device does some thousand in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const SearchPlan plan = plan_of(batch);
        const auto& options = mirror_.options();
        const double descent =
            static_cast<double>(options.k1 + plan.width * options.k2 + plan.ranked) * static_cast<double>(dimensions());
        const double lines = static_cast<double>(plan.candidates * options.line_parts);
        return 1e-3 * static_cast<double>(batch.count) * (2 * descent + 4 * lines);
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        const SearchPlan plan = plan_of(batch);
        ParameterList settings;
        settings.set("width", static_cast<std::int64_t>(plan.width));
        settings.set("candidates", static_cast<std::int64_t>(plan.candidates));
        return settings;
    }

protected:
    std::size_t row_count() const override { return mirror_.rows(); }
    std::size_t remote_row_bytes() const override { return mirror_.remote_row_bytes(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double ranked = static_cast<double>(batch.count * plan_of(batch).ranked);
        return patience_for(2e3 * search_cost(batch), ranked * static_cast<double>(mirror_.remote_row_bytes()));
    }
    // The form: one bit for each position. The bits of rows are freed.
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const override
    {
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        const MirrorView& view = mirror_.view();
        dead.form = DeviceArray<std::byte>(context().pool(), view.positions / 8, "pqtree dead rows", stream);
        rows::dead_positions(dead.words.data(), view.row_at, view.positions,
                             reinterpret_cast<std::uint32_t*>(dead.form.data()), stream);
        wait_for(stream, "placing dead rows");
        dead.words = {};
        return dead;
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        search_bins(batch, Round(batch), plan_of(batch), dead, results, pool);
    }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override
    {
        const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
            enqueue_continuation(mirror_, plan, chunk, {after.distance, after.row}, positions_of(dead));
        };
        search_one(one, plan_continuation(mirror_, one.k), enqueue, answer, pool);
    }

private:
    static const std::uint32_t* positions_of(const Tombstones* dead)
    {
        return dead != nullptr ? dead->form_as<std::uint32_t>() : nullptr;
    }
    SearchPlan plan_of(const SearchBatch& batch) const;
    void search_bins(const SearchBatch& batch, const Round& round, SearchPlan plan, const Tombstones* dead,
                     Results& results, ThreadPool& pool) const;

    Mirror mirror_;
};

SearchPlan TreeSearcher::plan_of(const SearchBatch& batch) const
{
    SearchPlan plan = search_plan(mirror_.options(), mirror_.rows(), batch);
    const auto proposed = static_cast<std::size_t>(batch.settings.get(setting_proposed, 0));
    if (proposed == 0) return plan;
    // No more candidates than given, however many of them are proposed.
    plan.candidates = static_cast<std::size_t>(batch.settings.get("candidates", 1));
    plan.ranked = std::min(proposed, mirror_.rows());
    plan.complete = false;
    return plan;
}

// As on the CPU: where a narrow descent or dead rows leave fewer rows than wanted, the descent is whole, and at last
// the answer exact.
void TreeSearcher::search_bins(const SearchBatch& batch, const Round& round, SearchPlan plan, const Tombstones* dead,
                               Results& results, ThreadPool& pool) const
{
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    // Where line codes order badly, no share of the candidates will do.
    const bool too_few = plan.ranked > most_proposed && mirror_.options().ranked_share == 1;
    if (k > most_proposed || ((plan.complete || too_few) && !batch.proposals_will_do))
        return search_all_rows(batch, round, results, pool);
    const SearchRequest request{plan, k, dead != nullptr ? dead->share : 0, !batch.proposals_will_do};
    const auto plan_chunks = [&](std::size_t, std::size_t count, std::size_t room) {
        return plan_chunk(mirror_, request, count, room);
    };
    const auto enqueue = [&](const DevicePlan& chunk_plan, const Chunk& chunk) {
        enqueue_chunk(mirror_, chunk_plan, chunk, positions_of(dead));
    };
    Unfinished left = search_round(batch, round, plan_chunks, enqueue, results, pool);
    if (left.few.empty() || batch.proposals_will_do) return;
    const Round few(batch, std::move(left.few));
    if (plan.width == mirror_.options().k1) return search_all_rows(batch, few, results, pool);
    plan.width = mirror_.options().k1;
    search_bins(batch, few, plan, dead, results, pool);
}

}  // namespace

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context,
                                        DeviceArray<std::uint8_t> codes)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<TreeSearcher>(shape, options, arrays, context, std::move(codes));
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return make_searcher(shape, options, arrays, roomiest(contexts()));
}

}  // namespace pgwarp::cuda::pqtree
