#include "rows/passing_tiles.h"

#include <algorithm>

#include "device/error.h"
#include "distance/mask_place.h"
#include "distance/proposals.h"
#include "rows/piece_compare.cuh"
#include "rows/row_masks.h"
#include "select/select.h"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr std::uint32_t slot_multiple = 64;  // queries that a warp group multiplies at a time
// Of a chunk on the device: some thousand queries of a million rows.
constexpr std::size_t most_workspace = std::size_t{768} << 20;
constexpr std::uint32_t piece_groups = most_piece_rows / group_rows;

struct Space {
    MaskSpace masks;  // its front is written by the host
    PreparedQueries queries;
    float* leasts;  // [slots][width]: minus the largest score of each group
    float* best;    // [count][groups + 1]: the least of these
    std::uint32_t* best_groups;
    std::byte* selection;
    Entries entries;
};

std::uint32_t pieces_of(const TilesPlan& plan)
{
    return (plan.groups + piece_groups - 1) / piece_groups;
}

SelectShape selection_of(const TilesPlan& plan, std::uint32_t width)
{
    return {plan.count, width, width, plan.groups + 1};
}

PreparedQueries take_queries(Carver& memory, const ScoredRows& rows, std::uint32_t count)
{
    PreparedQueries queries;
    queries.count = count;
    queries.padded = round_up(count, tile_queries);
    queries.halves = memory.take<__half>(std::size_t{queries.padded} * rows.padded_dimensions);
    queries.floats = memory.take<const float*>(queries.padded);
    queries.factors = memory.take<float>(queries.padded);
    queries.bounds = memory.take<QueryBound>(queries.padded);
    queries.usable = memory.take<std::uint32_t>(queries.padded);
    return queries;
}

Space lay_out(Carver& memory, const TiledRows& rows, const TilesPlan& plan, bool sent_alone)
{
    const std::uint32_t positions = rows.scored->padded_positions;
    const std::uint32_t width = positions / maxima_group;
    Space space{};
    space.masks = take_mask_space(memory, *plan.filters, positions, plan.slots, sent_alone);
    if (sent_alone) return space;
    space.queries = take_queries(memory, *rows.scored, plan.count);
    space.leasts = memory.take<float>(std::size_t{plan.slots} * width);
    space.best = memory.take<float>(std::size_t{plan.count} * (plan.groups + 1));
    space.best_groups = memory.take<std::uint32_t>(std::size_t{plan.count} * (plan.groups + 1));
    space.selection = memory.take<std::byte>(select_workspace_bytes(selection_of(plan, width)));
    space.entries = take_entries(memory, std::size_t{plan.count} * pieces_of(plan), plan.k);
    return space;
}

// The admitted rows of the chosen groups. Rows without a place in the mask have no number.
struct GroupedRows {
    RowOrder order;
    const std::uint32_t* groups;  // [queries][stride]; no_row: no group
    std::uint32_t stride;
    std::uint32_t chosen;
    std::uint32_t pieces;  // of a query
    const std::uint32_t* masks;
    const std::uint32_t* mask_of;
    std::size_t width;

    __device__ ListPiece piece(std::uint32_t number) const
    {
        const std::uint32_t first = number % pieces * piece_groups;
        return {number / pieces, first, min(piece_groups, chosen - first) * group_rows};
    }
    __device__ std::uint32_t row(const ListPiece& piece, std::uint32_t i) const
    {
        const std::uint32_t group = groups[std::size_t{piece.query} * stride + piece.first + i / group_rows];
        if (group == no_row) return no_row;
        const std::uint32_t bit = i % group_rows;
        const bool admitted = ((masks[mask_of[piece.query] * width + group] >> bit) & 1U) != 0;
        return admitted ? order.row_of(masked_position(group, bit)) : no_row;
    }
    __device__ bool passes(const ListPiece&, std::uint32_t row) const { return row != no_row; }
    __device__ std::size_t place(const ListPiece&, std::uint32_t number) const { return number; }
};

struct Proof {
    RowBounds bounds;
    Metric metric;
    bool halves;   // values are bounds, by halves
    double error;  // of these
    const QueryBound* queries;
    const std::uint32_t* usable;
    const float* best;  // [queries][groups + 1]
    std::uint32_t groups;
};

// Whether no row of other groups belongs to the first `found` entries, of which the last has this value.
__device__ bool is_proved(const Proof& proof, std::uint32_t query, std::uint32_t found, std::uint32_t k, double value)
{
    if (proof.usable[query] == 0) return false;
    const float next = proof.best[std::size_t{query} * (proof.groups + 1) + proof.groups];
    if (!(next < INFINITY)) return true;  // no other group has an admitted row
    if (found < k) return false;
    const QueryBound& bound = proof.queries[query];
    if (proof.halves) value = value_of_halves(proof.metric, value, proof.error, bound.own_norm);
    return static_cast<double>(-next) < lowest_score(proof.bounds, bound, value);
}

__global__ __launch_bounds__(merge_threads) void merge_and_prove(Entries entries, std::uint32_t pieces, std::uint32_t k,
                                                                 Proof proof, Answers out)
{
    __shared__ MergeShared shared;
    const std::uint32_t query = blockIdx.x;
    merge_pieces(entries, query * pieces, (query + 1) * pieces, query, k, shared, out);
    if (threadIdx.x != 0) return;
    // This thread has written `found`.
    const std::uint32_t found = out.found[query];
    const double last = found > 0 ? double_of_order(shared.keys[min(found, k) - 1]) : 0;
    if (!is_proved(proof, query, found, k, last)) out.found[query] = no_answer;
}

// Queries of a chunk: as many as the memory holds, in chunks of about the same number.
std::uint32_t queries_of_chunk(const TiledRows& rows, std::size_t asked, std::uint32_t k, std::size_t room)
{
    const std::size_t width = rows.scored->padded_positions / maxima_group;
    const std::size_t groups = compared_groups(k);
    const std::size_t entry_bytes = (groups / piece_groups + 1) * (entries_of_piece(k) * 12 + 12);
    const std::size_t bytes = width * 8 + rows.scored->padded_dimensions * 2 + groups * 8 + entry_bytes + 64;
    const std::size_t fit = std::max<std::size_t>(std::min(most_workspace, room / 2) / bytes, 1);
    const std::size_t multiple = fit >= tile_queries ? tile_queries : slot_multiple;
    const std::size_t most = std::max<std::size_t>(fit / multiple * multiple, slot_multiple);
    const std::size_t chunks = (asked + most - 1) / most;
    return static_cast<std::uint32_t>(std::min(asked, round_up((asked + chunks - 1) / chunks, multiple)));
}

}  // namespace

std::uint32_t compared_groups(std::uint32_t k)
{
    // With the next group, whose score bounds those of all others, a multiple of 32.
    return round_up(k + k / 4 + 12, 32U) - 1;
}

TilesPlan plan_passing_tiles(const TiledRows& rows, const AttributeView& attributes,
                             std::span<const PredicateWords> predicates, std::uint32_t k, std::size_t room,
                             ThreadPool& pool)
{
    TilesPlan plan;
    plan.k = k;
    plan.groups = compared_groups(k);
    plan.attributes = attributes;
    const std::uint32_t count = queries_of_chunk(rows, predicates.size(), k, room);
    plan.filters = std::make_shared<const DistinctFilters>(attributes, predicates.first(count), pool);
    plan.count = static_cast<std::uint32_t>(plan.filters->of_query().size());
    plan.slots = round_up(plan.count, slot_multiple);
    plan.host_workspace = carved_bytes([&](Carver& memory) { lay_out(memory, rows, plan, true); });
    plan.workspace = carved_bytes([&](Carver& memory) { lay_out(memory, rows, plan, false); });
    plan.answers_on_device = true;
    return plan;
}

void enqueue_passing_tiles(Context& context, const TiledRows& rows, const TilesPlan& plan, const Chunk& chunk,
                           ThreadPool& pool, const StepEnd& step_end)
{
    const ScoredRows& scored = *rows.scored;
    const cudaStream_t stream = chunk.stream;
    const auto end_step = [&](TilesStep step) {
        if (step_end) step_end(step);
    };
    Carver host(chunk.host_workspace);
    const MaskSpace written = lay_out(host, rows, plan, true).masks;
    write_masks(*plan.filters, plan.slots, written, pool);
    send_written(chunk, written.written);
    Carver device(chunk.workspace);
    const Space space = lay_out(device, rows, plan, false);
    const MaskedRows masked{scored.order, scored.padded_positions, rows.compared.dead};
    make_masks(masked, plan.attributes, *plan.filters, space.masks, context.multiprocessors(), stream);
    end_step(TilesStep::masks);

    prepare_queries(scored, chunk.queries, nullptr, 0, space.queries, stream);
    const std::uint32_t width = masked.width();
    ProposalJob job;
    job.rows = &scored;
    job.penalties = scored.penalties.data();
    job.queries = space.queries;
    job.out.maxima = space.leasts;
    job.out.maxima_width = width;
    job.range = {0, scored.padded_positions};
    job.masks = {space.masks.words, space.masks.of_slot};
    propose(context, job, stream);
    end_step(TilesStep::scores);

    select_smallest(space.leasts, selection_of(plan, width), space.best, space.best_groups, space.selection, stream);
    end_step(TilesStep::choice);

    CertainRows compared = rows.compared;
    compared.dead = nullptr;  // the masks leave them out
    const std::uint32_t pieces = pieces_of(plan);
    const CompareJob comparison = job_of(compared, chunk.queries, space.entries, plan.k, most_piece_rows);
    const GroupedRows grouped{scored.order, space.best_groups, plan.groups + 1,     plan.groups,
                              pieces,       space.masks.words, space.masks.of_slot, width};
    launch_comparison(comparison, grouped, plan.count * pieces, stream);
    const ResidentRows& resident = compared.resident;
    const Proof proof{scored.bounds,       resident.metric,      resident.full == nullptr,
                      resident.half.error, space.queries.bounds, space.queries.usable,
                      space.best,          plan.groups};
    merge_and_prove<<<plan.count, merge_threads, 0, stream>>>(space.entries, pieces, plan.k, proof, chunk.answers);
    check_launch("merging rows of groups");
    end_step(TilesStep::answers);
}

double tiles_nanoseconds(std::uint64_t rows, std::uint32_t dimensions, std::size_t queries)
{
    // By figures of an H100 for 1,000,000 rows of 128 and of 768 dimensions: 550 to 700 TFLOPS of halves.
    constexpr double products = 250e3;    // multiply-adds in a nanosecond
    constexpr double of_query = 1500;     // masks, the choice of groups, and the comparison of their rows
    constexpr double of_batch = 300'000;  // launches that a few queries wait for
    const auto slots = static_cast<double>(round_up<std::size_t>(queries, slot_multiple));
    const double padded = round_up(dimensions, dimension_multiple);
    return of_batch + static_cast<double>(queries) * of_query + slots * static_cast<double>(rows) * padded / products;
}

double pieces_nanoseconds(std::uint64_t rows, std::uint32_t dimensions, std::size_t queries, double passing)
{
    // By figures of an H100 for 1,000,000 rows of 128 dimensions: 50 us a query where half pass, 9.7 where 1 % do.
    constexpr double elements = 1500;  // compared in a nanosecond
    constexpr double tests = 110;      // of rows in a nanosecond
    const double of_query = static_cast<double>(rows) / tests + passing * dimensions / elements;
    return static_cast<double>(queries) * of_query;
}

}  // namespace pgwarp::cuda::rows
