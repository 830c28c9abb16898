#include "graph/device_search.h"

#include <algorithm>

#include "graph/rank.h"
#include "graph/seeds.h"
#include "graph/traverse.h"
#include "rows/ordered_rows.h"
#include "rows/queries.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::chrono::microseconds watched{500};
constexpr std::size_t most_queries = 16384;
constexpr std::size_t most_scores = std::size_t{1} << 26;              // scores of queries with seeds at a time
constexpr std::size_t most_compared = std::size_t{3} << 35;            // elements of one launch that compares seeds
constexpr std::size_t remote_bytes_of_launch = std::size_t{64} << 20;  // read over the bus

struct Workspace {
    std::byte* filters = nullptr;  // written by the host, so they come first
    rows::PreparedQueries for_rows;
    rows::PreparedQueries for_seeds;
    std::uint32_t* query_bits = nullptr;
    float* queries = nullptr;  // copies of queries that are read from page-locked memory
    SeedSpace seeds;
    std::uint32_t* starts = nullptr;
    std::uint32_t* rows = nullptr;
    std::uint32_t* found = nullptr;
};

Workspace carve(Carver& carver, const Mirror& mirror, const SearchPlan& plan)
{
    Workspace space;
    const std::size_t count = plan.count;
    space.filters = carver.take<std::byte>(plan.filters.bytes());
    if (mirror.options().bits > 0) {
        space.query_bits = carver.take<std::uint32_t>(count * mirror.options().bits / 32);
    } else if (plan.direct) {
        space.queries = carver.take<float>(count * mirror.dimensions());
    } else {
        space.for_rows = rows::take_prepared_queries(carver, count, mirror.dimensions(), true);
    }
    if (plan.shape.offered > 0) {
        space.for_seeds = rows::take_prepared_queries(carver, count, mirror.dimensions(), false);
        space.seeds.scores = carver.take<float>(count * seed_stride(plan.shape));
        space.seeds.values = carver.take<float>(count * plan.shape.offered);
        space.seeds.columns = carver.take<std::uint32_t>(count * plan.shape.offered);
        space.seeds.select = carver.take<std::byte>(select_bytes(plan.shape, plan.count));
        space.starts = carver.take<std::uint32_t>(count * plan.shape.offered);
    }
    if (!plan.shape.ranks) {
        space.rows = carver.take<std::uint32_t>(count * plan.shape.wanted);
        space.found = carver.take<std::uint32_t>(count);
    }
    return space;
}

struct Continuation {
    rows::PreparedQueries query;
    std::uint32_t* bits;  // of the query
    double* values;       // [rows]
    rows::SelectionSpace selection;
};

Continuation carve_continuation(Carver& carver, const Mirror& mirror)
{
    return {rows::take_prepared_queries(carver, 1, mirror.dimensions(), true),
            carver.take<std::uint32_t>(mirror.options().bits / 32), carver.take<double>(mirror.rows()),
            rows::take_selection_space(carver)};
}

// The queries of a chunk: bounded by the memory of their scores and by the time to compare the seeds.
std::size_t queries_of_chunk(const Mirror& mirror, const LaunchConfig& shape, std::size_t count, std::size_t room)
{
    if (shape.offered == 0) return std::min(count, most_queries);
    const std::size_t scores = std::min(most_scores, std::max<std::size_t>(room / 16, 1)) / seed_stride(shape);
    const std::size_t compared = most_compared / (std::size_t{shape.seeds} * mirror.dimensions());
    return std::min({count, most_queries, std::max<std::size_t>(1, scores), std::max<std::size_t>(1, compared)});
}

// Whether traversal and ranking both take the queries as given.
bool compares_queries_as_given(const GraphView& view)
{
    const bool full = view.vectors.full != nullptr || view.vectors.remote.full != nullptr;
    return full && (view.form == TraversalForm::bytes || view.form == TraversalForm::floats);
}

}  // namespace

SearchPlan plan_search(const Mirror& mirror, const ParameterList& settings, std::size_t ef, std::size_t k,
                       std::size_t count, std::size_t room, rows::SentFilters filters)
{
    const DeviceLimits limits = mirror.limits();
    SearchPlan plan;
    plan.shape = launch_config(settings, ef, rows_to_rank(k), count, limits);
    const std::size_t sent = filters.count() > 0 ? std::min(count, filters.count()) : count;
    plan.count = static_cast<std::uint32_t>(queries_of_chunk(mirror, plan.shape, sent, room));
    plan.filters = std::move(filters);
    plan.filters.keep(plan.count);
    plan.host_workspace = plan.filters.bytes();
    plan.k = static_cast<std::uint32_t>(std::min<std::size_t>(k, plan.shape.wanted));
    plan.chained = count <= rows::chained_queries;
    plan.direct = plan.chained && plan.shape.offered == 0 && compares_queries_as_given(mirror.view());
    plan.rank_queries = plan.count;
    if (mirror.remote_row_bytes() > 0) {
        const std::size_t bytes = std::size_t{plan.shape.wanted} * mirror.remote_row_bytes();
        plan.rank_queries =
            static_cast<std::uint32_t>(std::clamp<std::size_t>(remote_bytes_of_launch / bytes, 1, plan.count));
    }
    plan.reads_in_place = plan.direct;
    if (plan.chained) plan.watched = watched;
    plan.workspace = carved_bytes([&](Carver& memory) { carve(memory, mirror, plan); });
    return plan;
}

void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead,
                    TraversalCounts* work, ThreadPool& pool)
{
    Carver carver(chunk.workspace);
    const Workspace space = carve(carver, mirror, plan);
    const float* queries = chunk.queries;
    const Answers& out = chunk.answers;
    const cudaStream_t stream = chunk.stream;
    const GraphView& view = mirror.view();
    const bool filtered = plan.filters.count() > 0;
    if (filtered) {
        plan.filters.write(chunk.host_workspace, pool);
        send_written(chunk, plan.host_workspace);
    }
    const bool routed = plan.shape.offered > 0;
    const rows::QuerySpace for_rows = rows::space_of(view.vectors.metric, view.vectors.half);
    rows::QueryView for_seeds{};
    if (view.has_bits()) {
        project(view.bits, queries, view.vectors.dimensions, plan.count, space.query_bits, stream);
    } else if (plan.direct) {
        // The traversal kernel copies the queries.
    } else if (!routed) {
        rows::prepare_queries(queries, plan.count, view.vectors.dimensions, for_rows, space.for_rows, stream);
    } else {
        rows::prepare_queries(queries, plan.count, view.vectors.dimensions, for_rows, space.for_rows,
                              rows::space_of(view.vectors.metric, view.seed_halves.half), space.for_seeds, stream);
        for_seeds = {queries, space.for_seeds.moved, space.for_seeds.halves, space.for_seeds.multipliers,
                     space.for_seeds.norms};
    }
    if (routed) {
        choose_starts(view, plan.shape, for_seeds, plan.count, space.seeds,
                      static_cast<std::uint32_t>(mirror.context().shared_bytes_per_block()), space.starts, stream);
    }

    TraverseJob job;
    job.view = &view;
    job.shape = plan.shape;
    job.queries = view.form == TraversalForm::halves ? space.for_rows.moved : queries;
    job.query_copy = space.queries;
    job.given = plan.direct ? chunk.given : nullptr;
    job.query_bits = space.query_bits;
    job.starts = space.starts;
    job.dead = dead;
    job.filters = plan.filters.view(space.filters);
    job.count = plan.count;
    job.rows = space.rows;
    job.found = space.found;
    job.rank = {plan.direct ? space.queries : queries, space.for_rows.norms, space.query_bits};
    job.k = plan.k;
    job.answers = out;
    job.work = work;
    job.chained = plan.chained && !filtered;  // what was sent has no end to wait for early
    traverse(job, stream);
    if (plan.shape.ranks) return;

    for (std::uint32_t first = 0; first < plan.count; first += plan.rank_queries) {
        rank_found(view, job.rank.from(view, first), space.rows + std::size_t{first} * plan.shape.wanted,
                   space.found + first, std::min(plan.rank_queries, plan.count - first), plan.shape.wanted, plan.k,
                   out.from(first, plan.k), plan.chained, stream);
    }
}

std::size_t continuation_bytes(const Mirror& mirror)
{
    return carved_bytes([&](Carver& memory) { carve_continuation(memory, mirror); });
}

void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const rows::RowCursor& after,
                          const std::uint32_t* dead)
{
    Carver carver(chunk.workspace);
    const Continuation space = carve_continuation(carver, mirror);
    const GraphView& view = mirror.view();
    if (view.has_bits()) {
        project(view.bits, chunk.queries, view.vectors.dimensions, 1, space.bits, chunk.stream);
    } else {
        rows::prepare_queries(chunk.queries, 1, view.vectors.dimensions,
                              rows::space_of(view.vectors.metric, view.vectors.half), space.query, chunk.stream);
    }
    const RankQueries query{chunk.queries, space.query.norms, space.bits};
    rows::value_in_steps(view.rows, mirror.remote_row_bytes(), [&](std::uint32_t first, std::uint32_t count) {
        all_values(view, query, first, count, space.values + first, chunk.stream);
    });
    rows::first_after({space.values, view.vectors.row_at, dead, view.rows}, after, plan.k, space.selection,
                      chunk.answers, chunk.stream);
}

}  // namespace pgwarp::cuda::graph
