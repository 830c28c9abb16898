#include "ivfadc/device_search.h"

#include <algorithm>
#include <cstdint>

#include "ivfadc/few_queries.h"
#include "ivfadc/group_finish.h"
#include "ivfadc/pair_scan.h"
#include "ivfadc/probes.h"
#include "ivfadc/query_space.h"
#include "ivfadc/scan.h"
#include "rows/table_scan.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr std::size_t most_decoded = std::size_t{1} << 30;             // bytes of decoded rows
constexpr std::size_t most_scores = std::size_t{512} << 20;            // bytes of dense or coarse scores
constexpr double most_products = 6e11;                                 // multiply-adds of a scan
constexpr std::size_t remote_bytes_of_launch = std::size_t{64} << 20;  // read over the bus: about 1.3 ms
constexpr std::size_t most_queries = 16384;
constexpr std::size_t most_pairs = std::size_t{1} << 31;
constexpr std::chrono::microseconds watched{500};
constexpr std::uint32_t whole_select = 1024;  // the most candidates that the last step sorts
constexpr std::uint32_t most_grouped = 264;   // the most queries of finish_groups(): a block each

// The probed lists of a batch, over all lists, from which pairs are sorted by list: reading every list once by tiles
// takes as long as reading that many by warps (measured on an H200).
constexpr std::size_t passes_of_halves = 2;
constexpr std::size_t passes_of_codes = 7;
constexpr std::size_t fewest_sorted = 4;  // queries: fewer leave tiles mostly empty

struct Workspace {
    PreparedQueries for_rows;
    PreparedQueries for_centroids;
    float* coarse;
    ProbeArrays probes;
    OrderArrays order;
    float* original;
    GroupArrays groups;
    float* tables;
    float* dense;
    std::uint32_t* minima;
    float* limits;
    std::uint64_t* candidates;
    std::uint32_t* counts;
    std::uint32_t* positions;
    __half* decoded;
};

Workspace carve(Carver& carver, const Mirror& mirror, const SearchPlan& plan)
{
    Workspace space{};
    const std::size_t pairs = std::size_t{plan.count} * plan.probes;
    space.for_rows = take_prepared_queries(carver, plan.count, mirror.dimensions(), true);
    space.for_centroids = take_prepared_queries(carver, plan.count, mirror.dimensions(), false);
    space.coarse = carver.take<float>(plan.count * plan.coarse_stride);
    space.probes = {carver.take<std::uint32_t>(pairs), carver.take<std::uint32_t>(pairs), carver.take<float>(pairs),
                    carver.take<std::uint32_t>(plan.count)};
    if (plan.sorted) {
        const std::size_t buckets = 2 * mirror.lists();
        space.order = {carver.take<std::uint32_t>(buckets), carver.take<std::uint32_t>(buckets),
                       carver.take<std::uint32_t>(buckets), carver.take<std::uint32_t>(3),
                       carver.take<std::uint32_t>(pairs),   carver.take<ScanItem>(plan.most_items)};
    } else {
        space.tables = carver.take<float>(pair_table_floats(mirror.view(), plan.count));
    }
    const std::size_t groups = plan.count * plan.dense_stride / group_rows;
    if (plan.few) space.original = carver.take<float>(plan.count * mirror.dimensions());
    if (!plan.sorted || plan.grouped) {
        space.groups = {carver.take<std::uint32_t>(groups), carver.take<float>(groups), plan.dense_stride / group_rows};
        space.probes.groups = space.groups;
    }
    space.dense = carver.take<float>(plan.count * plan.dense_stride);
    if (plan.grouped) space.minima = carver.take<std::uint32_t>(groups);
    if (plan.limited) {
        space.limits = carver.take<float>(plan.count);
        space.candidates = carver.take<std::uint64_t>(std::size_t{plan.count} * plan.capacity);
        space.counts = carver.take<std::uint32_t>(plan.count);
    }
    if (plan.wide) space.positions = carver.take<std::uint32_t>(std::size_t{plan.count} * plan.wanted);
    if (plan.decoded) space.decoded = carver.take<__half>(std::size_t{mirror.view().positions} * mirror.view().stride);
    return space;
}

struct Continuation {
    PreparedQueries query;
    double* values;  // [positions]
    SelectionSpace selection;
};

Continuation carve_continuation(Carver& carver, const Mirror& mirror)
{
    return {take_prepared_queries(carver, 1, mirror.dimensions(), true), carver.take<double>(mirror.view().positions),
            take_selection_space(carver)};
}

// Parts of a batch from query `first` on. Views are plain pointers, so copies are moved.
QueryView from(QueryView queries, const MirrorView& mirror, std::size_t first)
{
    queries.original += first * mirror.dimensions;
    queries.moved += first * mirror.dimensions;
    queries.halves += first * mirror.stride;
    queries.multipliers += first;
    queries.norms += first;
    return queries;
}
ProbeView from(ProbeView probes, std::size_t first)
{
    probes.list += first * probes.probes;
    probes.slot += first * probes.probes;
    probes.constant += first * probes.probes;
    probes.slots += first;
    return probes;
}
LimitedScores from(LimitedScores scores, std::size_t first)
{
    scores.limits += first;
    scores.candidates += first * scores.capacity;
    scores.counts += first;
    return scores;
}

// Queries whose candidates one launch reads over the bus within a millisecond or two.
std::uint32_t queries_of_finish(const Mirror& mirror, const SearchPlan& plan)
{
    if (mirror.remote_row_bytes() == 0) return plan.count;
    const std::size_t bytes = std::size_t{plan.wanted} * mirror.remote_row_bytes();
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(remote_bytes_of_launch / bytes, 1, plan.count));
}

QueryView view_of(const PreparedQueries& queries, const float* original)
{
    return {original, queries.moved, queries.halves, queries.multipliers, queries.norms};
}

// Prepares the queries and finds the lists that each query probes.
void choose_lists(const MirrorView& view, const SearchPlan& plan, const float* queries, const Workspace& space,
                  cudaStream_t stream)
{
    if (plan.few) {
        score_centroids(view, queries, plan.count, space.original, space.for_rows, space.coarse, plan.coarse_stride,
                        stream);
        rank_lists(view, space.coarse, plan.coarse_stride, plan.count, plan.probes, space.probes, stream);
        return;
    }
    prepare_queries(queries, plan.count, view.dimensions, space_of_rows(view), space.for_rows,
                    space_of(view.metric, view.centres.half), space.for_centroids, stream);
    scan_table(view.centres, view.stride, view_of(space.for_centroids, queries), plan.count,
               {space.coarse, plan.coarse_stride}, plan.shared_bytes, stream);
    select_probes(view, space.coarse, plan.coarse_stride, plan.count, plan.probes, space.probes, stream);
}

struct ChunkRequest {
    std::size_t count;  // queries of the batch
    std::size_t probes;
    std::size_t wanted;
    std::size_t k;
    bool may_limit;
    std::size_t room;
};

// The plan of a chunk of `queries` queries, without the bytes of its workspace.
SearchPlan plan_chunk(const Mirror& mirror, const ChunkRequest& request, std::size_t queries)
{
    const auto& most = mirror.layout().most_slots;
    const std::size_t probes = request.probes;
    const std::size_t wanted = request.wanted;
    SearchPlan plan;
    plan.count = static_cast<std::uint32_t>(queries);
    plan.probes = static_cast<std::uint32_t>(probes);
    plan.wanted = static_cast<std::uint32_t>(wanted);
    plan.wide = wanted > whole_select;
    plan.k = static_cast<std::uint32_t>(plan.wide ? wanted : request.k);
    // The nearest lists that set the limit hold about 16 times the wanted rows, so that the limit lets few more rows
    // pass.
    const std::size_t average = std::max<std::size_t>(1, most.back() / mirror.lists());
    plan.first_ranks = static_cast<std::uint32_t>(std::max<std::size_t>(1, (16 * wanted + average - 1) / average));
    const std::size_t passes = mirror.view().scans_codes ? passes_of_codes : passes_of_halves;
    plan.sorted = queries * probes >= passes * mirror.lists() && queries >= fewest_sorted;
    plan.limited = request.may_limit && plan.sorted && wanted <= limited_most && request.count >= 256 &&
                   3 * plan.first_ranks <= probes;
    if (!plan.limited) plan.first_ranks = plan.probes;
    plan.capacity = plan.limited ? static_cast<std::uint32_t>(std::clamp<std::size_t>(16 * wanted, 2048, 4096)) : 0;
    plan.coarse_stride = whole_groups(static_cast<std::uint32_t>(mirror.lists()));
    plan.dense_stride = most[plan.first_ranks];
    plan.shared_bytes = static_cast<std::uint32_t>(mirror.context().shared_bytes_per_block());
    // Only prepare_queries() rotates by signs, as that needs whole rows.
    plan.few = !plan.sorted && plan.count <= few_queries && mirror.lists() <= few_lists &&
               mirror.dimensions() <= few_dimensions && mirror.view().code.signs == nullptr;
    // The bounds need at least twice as many groups as wanted candidates.
    plan.grouped = !plan.limited && !plan.wide && plan.count <= most_grouped &&
                   probes * average >= 2 * wanted * group_rows && queries_of_finish(mirror, plan) == plan.count;
    if (plan.sorted) plan.most_items = most_items(mirror.layout(), queries, probes, scan_queries, item_rows);
    // Decoding once a batch pays off where several items read each list.
    const std::size_t decoded = std::size_t{mirror.view().positions} * mirror.view().stride * sizeof(__half);
    plan.decoded = plan.sorted && mirror.view().scans_codes && queries * probes >= 32 * mirror.lists() &&
                   decoded <= std::min(most_decoded, request.room / 4);
    plan.reads_in_place = plan.few;
    plan.ordered = !plan.wide;
    if (plan.grouped) plan.watched = watched;
    return plan;
}

// The most queries that a chunk of the plan's kind may have by the length of its launches and the bytes of its scores.
std::size_t queries_in_time(const Mirror& mirror, const ChunkRequest& request, const SearchPlan& plan)
{
    const std::size_t scores = std::max({plan.coarse_stride, plan.dense_stride, std::size_t{2} * plan.capacity});
    const double products = std::max<double>(1, static_cast<double>(mirror.layout().most_slots[request.probes])) *
                            static_cast<double>(mirror.dimensions());
    std::size_t queries = std::min(most_scores, request.room / 4) / (scores * sizeof(float));
    queries = std::min(queries, static_cast<std::size_t>(most_products / products));
    if (plan.wide) queries = std::min(queries, (std::size_t{1} << 22) / request.wanted);
    return std::max<std::size_t>(1, queries);
}

}  // namespace

SearchPlan plan_search(const Mirror& mirror, std::size_t count, std::size_t probes, std::size_t wanted, std::size_t k,
                       bool may_limit, std::size_t room)
{
    const ChunkRequest request{count, probes, wanted, k, may_limit, room};
    std::size_t queries = std::min({count, most_queries, std::max<std::size_t>(1, most_pairs / probes)});
    for (;;) {
        SearchPlan plan = plan_chunk(mirror, request, queries);
        const std::size_t most = queries_in_time(mirror, request, plan);
        if (most < queries) {
            queries = most;
            continue;
        }
        plan.workspace = carved_bytes([&](Carver& memory) { carve(memory, mirror, plan); });
        const std::size_t sent = plan.reads_in_place ? 0 : queries * mirror.dimensions() * sizeof(float);
        const bool fits = plan.workspace + sent <= room / 4 * 3 && plan.most_items <= UINT32_MAX;
        if (fits || queries == 1) return plan;
        queries = (queries + 1) / 2;
    }
}

void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead)
{
    Carver carver(chunk.workspace);
    const Workspace space = carve(carver, mirror, plan);
    const float* queries = chunk.queries;
    const Answers& out = chunk.answers;
    const cudaStream_t stream = chunk.stream;
    const MirrorView& view = mirror.view();
    choose_lists(view, plan, queries, space, stream);

    const QueryView prepared = view_of(space.for_rows, plan.few ? space.original : queries);
    ScanWork work;
    work.probes = {plan.probes,        space.probes.list,     space.probes.slot,     space.probes.constant,
                   space.probes.slots, space.groups.position, space.groups.constant, space.groups.stride};
    work.dead = dead;
    work.shared_bytes = plan.shared_bytes;
    const DenseScores dense{space.dense, plan.dense_stride, space.minima};
    if (!plan.sorted) {
        work.most_slots = static_cast<std::uint32_t>(plan.dense_stride);
        scan_pairs(view, prepared, plan.count, work, space.tables, dense, stream);
    } else {
        order_pairs(view, work.probes, plan.count, plan.first_ranks, space.order, stream);
        work.items = space.order.items;
        work.order = space.order.order;
        work.first_item = space.order.totals;
        work.last_item = space.order.totals + 1;
        work.most_items = static_cast<std::uint32_t>(plan.most_items);
        estimate_tiles(view, std::uint64_t{plan.count} * plan.probes,
                       mirror.layout().most_slots.back() / mirror.lists(), work);
        work.decoded = space.decoded;
        if (plan.decoded) decode_rows(view, space.decoded, stream);
        scan_lists(view, prepared, work, dense, stream);
    }
    const std::uint32_t step = queries_of_finish(mirror, plan);
    if (plan.limited) {
        const LimitedScores limited{space.limits, space.candidates, space.counts, plan.capacity};
        set_limits(view, work.probes, dense, plan.count, plan.first_ranks, plan.wanted, space.limits, limited, stream);
        work.first_item = space.order.totals + 1;
        work.last_item = space.order.totals + 2;
        scan_lists(view, prepared, work, limited, stream);
        for (std::uint32_t first = 0; first < plan.count; first += step) {
            finish_limited(view, from(prepared, view, first), from(limited, first), std::min(step, plan.count - first),
                           plan.wanted, plan.k, out.from(first, plan.k), stream);
        }
        return;
    }
    for (std::uint32_t first = 0; first < plan.count; first += step) {
        const std::uint32_t count = std::min(step, plan.count - first);
        const DenseScores scores{dense.scores + first * dense.stride, dense.stride};
        const Answers answers = out.from(first, plan.k);
        if (plan.wide) {
            finish_wide(view, from(prepared, view, first), from(work.probes, first), scores, count, plan.wanted,
                        space.positions, answers, stream);
        } else if (plan.grouped) {
            finish_groups(view, prepared, work.probes, dense, plan.count, plan.wanted, plan.k, out, stream);
        } else {
            finish_dense(view, from(prepared, view, first), from(work.probes, first), scores, count, plan.wanted,
                         plan.k, answers, stream);
        }
    }
}

std::size_t continuation_bytes(const Mirror& mirror)
{
    return carved_bytes([&](Carver& memory) { carve_continuation(memory, mirror); });
}

void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const RowCursor& after,
                          const std::uint32_t* dead)
{
    Carver carver(chunk.workspace);
    const Continuation space = carve_continuation(carver, mirror);
    const MirrorView& view = mirror.view();
    prepare_queries(chunk.queries, 1, view.dimensions, space_of_rows(view), space.query, chunk.stream);
    const QueryView query = view_of(space.query, chunk.queries);
    value_in_steps(view.positions, mirror.remote_row_bytes(), [&](std::uint32_t first, std::uint32_t count) {
        all_values(view, query, first, count, space.values + first, chunk.stream);
    });
    first_after({space.values, view.row_at, dead, view.positions}, after, plan.k, space.selection, chunk.answers,
                chunk.stream);
}

}  // namespace pgwarp::cuda::ivfadc
