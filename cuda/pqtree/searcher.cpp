// The searcher of the product quantization tree on the device: the effort of a batch, and searches again of queries
// that found too few rows.
#include <algorithm>

#include "pqtree/device_search.h"
#include "pqtree/pqtree.h"
#include "rows/mirror_searcher.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

class TreeSearcher : public rows::ListedSearcher<Mirror>
{
public:
    TreeSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                 Context& context, DeviceArray<std::uint8_t> codes)
        : ListedSearcher(shape, options, arrays, context, "pqtree workspace", std::move(codes))
    {
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
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double ranked = static_cast<double>(batch.count * plan_of(batch).ranked);
        return patience_for(2e3 * search_cost(batch), ranked * static_cast<double>(mirror_.remote_row_bytes()));
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        search_bins(batch, Round(batch), plan_of(batch), dead, results, pool);
    }

private:
    SearchPlan plan_of(const SearchBatch& batch) const;
    void search_bins(const SearchBatch& batch, const Round& round, SearchPlan plan, const Tombstones* dead,
                     Results& results, ThreadPool& pool) const;
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
    // Neither do rows that a block has no room to rank.
    if (request.ranks && !has_room(mirror_, request)) return search_all_rows(batch, round, results, pool);
    const auto plan_chunks = [&](std::size_t, std::size_t count, std::size_t room) {
        return plan_chunk(mirror_, request, count, room);
    };
    const auto enqueue = [&](const DevicePlan& chunk_plan, const Chunk& chunk) {
        enqueue_chunk(mirror_, chunk_plan, chunk, bits_of(dead));
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
