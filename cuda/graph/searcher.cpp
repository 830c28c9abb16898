// The searcher of the graph on the device: effort of a batch, and retries with longer queues.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "graph/device_search.h"
#include "graph/filtered_queue.h"
#include "graph/graph.h"
#include "rows/mirror_searcher.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr double unseen_share = 0.4;  // of the neighbours of an expanded row

class GraphSearcher : public rows::MirrorSearcher<Mirror>
{
public:
    GraphSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                  Context& context)
        : MirrorSearcher(shape, options, arrays, context, "graph workspace")
    {
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
    bool values_are_distances() const override { return mirror_.options().vectors != GraphVectors::bits; }
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
    // In float operations of the CPU: the device does some thousand in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override { return 1e-3 * compared(batch.count, ef_of(batch)); }
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double pass_rate) const override;
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("ef_search", static_cast<std::int64_t>(ef_of(batch)));
        return settings;
    }

protected:
    // Bits, and vectors in host memory, are compared by scans.
    std::optional<rows::CertainRows> certain_rows() const override
    {
        const GraphView& view = mirror_.view();
        const bool has_form = mirror_.options().vectors == GraphVectors::half
                                  ? mirror_.metric() != Metric::l1
                                  : mirror_.options().vectors == GraphVectors::full && view.vectors.full != nullptr;
        if (!has_form) return std::nullopt;
        rows::CertainRows rows;
        rows.resident = view.vectors;
        rows.resident.metric = view.metric;
        if (view.vectors.full != nullptr && view.form == TraversalForm::bytes)
            rows.coded = {view.bytes.rows, view.bytes.terms, view.bytes.mean, view.bytes.stride};
        return rows;
    }
    const std::uint32_t* bits_of(const Tombstones* dead) const override
    {
        return dead != nullptr ? dead->half_words() : nullptr;
    }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        return round_patience(batch.count, ef_of(batch), batch.k);
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override;

private:
    std::size_t ef_of(const SearchBatch& batch) const
    {
        return ef_search_of(batch.settings, batch.effort, batch.k, mirror_.rows());
    }
    // An estimate of the elements of rows that searches of `count` queries compare.
    double compared(std::size_t count, std::size_t ef) const
    {
        const double rows =
            4096 + unseen_share * static_cast<double>(mirror_.options().degree) * static_cast<double>(ef);
        return static_cast<double>(count) * std::min(rows, static_cast<double>(mirror_.rows())) *
               static_cast<double>(mirror_.dimensions());
    }
    std::chrono::milliseconds round_patience(std::size_t count, std::size_t ef, std::size_t k) const;
    bool may_traverse(const ParameterList& settings, std::size_t ef, const SearchBatch& batch) const;
    void search_graph(const SearchBatch& batch, const Round& round, std::size_t ef, const std::uint32_t* dead,
                      Results& results, ThreadPool& pool) const;
    void search_filtered(const SearchBatch& batch, const Round& round, const FilteredQueue& queue,
                         const std::uint32_t* dead, Results& results, ThreadPool& pool) const;
};

// The longest time that a wait in a round may take: rows are compared, and those that rank may come over the bus.
std::chrono::milliseconds GraphSearcher::round_patience(std::size_t count, std::size_t ef, std::size_t k) const
{
    const double ranked = static_cast<double>(count) * static_cast<double>(std::min(rows_to_rank(k), ef));
    return patience_for(2 * compared(count, ef), ranked * static_cast<double>(mirror_.remote_row_bytes()),
                        ranked * static_cast<double>(mirror_.dimensions()) * canonical_operations);
}

// Whether the search can run on the device: the queue and the query fit in a block's shared memory.
bool GraphSearcher::may_traverse(const ParameterList& settings, std::size_t ef, const SearchBatch& batch) const
{
    if (ef > most_ef) return false;
    const DeviceLimits limits = mirror_.limits();
    return launch_config(settings, ef, rows_to_rank(batch.k), batch.count, limits).shared_bytes <= limits.shared_bytes;
}

// Queries that found too few rows, as many rows are dead, keep more rows; at last all rows are scanned.
void GraphSearcher::search_graph(const SearchBatch& batch, const Round& round, std::size_t ef,
                                 const std::uint32_t* dead, Results& results, ThreadPool& pool) const
{
    if (!may_traverse(batch.settings, ef, batch)) return search_all_rows(batch, round, results, pool);
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    const DevicePatience patience(round_patience(round.size(), ef, k));
    const auto plan_of = [&](std::size_t, std::size_t count, std::size_t room) {
        return plan_search(mirror_, batch.settings, ef, k, count, room);
    };
    const auto enqueue = [&](const SearchPlan& plan, const Chunk& chunk) {
        enqueue_search(mirror_, plan, chunk, dead, nullptr);
    };
    Unfinished left = search_round(batch, round, plan_of, enqueue, results, pool);
    if (left.few.empty()) return;
    const Round few(batch, std::move(left.few));
    if (4 * ef >= mirror_.rows()) return search_all_rows(batch, few, results, pool);
    search_graph(batch, few, 4 * ef, dead, results, pool);
}

void GraphSearcher::search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                   ThreadPool& pool) const
{
    // Dead rows take places in the queue, so it grows by their share.
    const double alive = dead != nullptr ? std::max(0.05, 1 - dead->share) : 1;
    const std::size_t asked = ef_of(batch);
    const auto widened = static_cast<std::size_t>(std::llround(static_cast<double>(asked) / alive));
    const std::size_t ef = std::min({std::max<std::size_t>(asked, most_ef), widened, mirror_.rows()});
    if (batch.filters.empty()) return search_graph(batch, Round(batch), ef, bits_of(dead), results, pool);
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    std::vector<std::uint32_t> without;  // a predicate
    std::map<FilteredQueue, std::vector<std::uint32_t>> of_queue;
    for (std::uint32_t q = 0; q < batch.count; ++q) {
        const RowFilter& filter = batch.filters[q];
        const double share = static_cast<double>(filter.passing) / static_cast<double>(mirror_.rows());
        (filter.predicate.empty() ? without : of_queue[filtered_queue(asked, k, alive * share)]).push_back(q);
    }
    if (!without.empty()) search_graph(batch, Round(batch, std::move(without)), ef, bits_of(dead), results, pool);
    // Queries of like pass rates have queues of one length.
    for (auto& [queue, queries] : of_queue) {
        if (queue.length == 0) continue;
        const Round round = queries.size() == batch.count ? Round(batch) : Round(batch, std::move(queries));
        search_filtered(batch, round, queue, bits_of(dead), results, pool);
    }
}

// Queries that find fewer rows than pass are left so: the rows that pass may be anywhere.
void GraphSearcher::search_filtered(const SearchBatch& batch, const Round& round, const FilteredQueue& queue,
                                    const std::uint32_t* dead, Results& results, ThreadPool& pool) const
{
    const std::size_t ef = std::min(queue.ef, mirror_.rows());
    ParameterList settings = batch.settings;
    settings.set("queue_length", static_cast<std::int64_t>(queue.length));
    if (!may_traverse(settings, ef, batch)) return;
    std::vector<rows::PredicateWords> predicates;
    for (std::size_t i = 0; i < round.size(); ++i) predicates.push_back(batch.filters[round.number(i)].predicate);
    const rows::AttributeView attributes = attributes_of(batch);
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    const DevicePatience patience(round_patience(round.size(), queue.length, k));
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t room) {
        return plan_search(mirror_, settings, ef, k, count, room,
                           rows::SentFilters(attributes, std::span(predicates).subspan(first, count)));
    };
    const auto enqueue = [&](const SearchPlan& plan, const Chunk& chunk) {
        enqueue_search(mirror_, plan, chunk, dead, nullptr, pool);
    };
    search_round(batch, round, plan_of, enqueue, results, pool);
}

// In float operations of the CPU, as many as rows that are compared would take in the same time: a row that a search
// meets takes longer than one of a list.
double GraphSearcher::filtered_cost(const SearchBatch& batch, double pass_rate) const
{
    constexpr double met_cost = 1000;
    const std::size_t k = std::min<std::size_t>(batch.k, mirror_.rows());
    const FilteredQueue queue = filtered_queue(ef_of(batch), k, pass_rate);
    if (queue.length == 0) return std::numeric_limits<double>::infinity();
    const double met = unseen_share * static_cast<double>(mirror_.options().degree * queue.ef);
    return met * (2 * static_cast<double>(mirror_.dimensions()) + met_cost);
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
