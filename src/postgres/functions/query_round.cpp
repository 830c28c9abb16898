#include "postgres/functions/query_round.h"

#include <cmath>

#include "postgres/am/index_options.h"
#include "postgres/scan/search_limits.h"
#include "postgres/scan/search_reply.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

bool is_own_row(const QueryBatch* batch, uint32 query, Tid tid)
{
    return batch->own != nullptr && batch->own[query] == tid;
}

// Raise an error if the engine's distance differs from that of the heap's row (pgwarp.verify_results).
void verify_distance(const SearchTarget* target, const float* query, Tid entry, double distance)
{
    double truth = 0;
    const RowView compared = dense_rows(query, 1, target->dimensions);
    if (!fetch_row_distance(target->reader, entry, target->metric, compared, &truth)) return;
    if (std::fabs(distance - truth) <= distance_rounding * Max(std::fabs(truth), std::fabs(distance))) return;
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("index \"%s\" returned a wrong distance for row (%u,%u): %.17g, the row's own is %.17g",
                           RelationGetRelationName(target->index), entry.block, entry.offset, distance, truth)));
}

// Offer a result with the engine's exact distance.
void offer_exact(const Round& round, uint32 query, const Result& result, NeighbourList* list)
{
    Neighbour row = {{}, result.distance};
    if (!find_visible_row(round.target->visible, result.tid, &row.tid) || is_own_row(round.batch, query, row.tid)) {
        return;
    }
    if (setting_verify_results) verify_distance(round.target, query_at(round.batch, query), result.tid, row.distance);
    list->offer(row);
}

// Offer a result with the distance of its heap row.
void offer_by_row(const Round& round, uint32 query, const Result& result, NeighbourList* list)
{
    const SearchTarget* target = round.target;
    Neighbour row = {};
    const float* vector = fetch_visible_vector(target->visible, result.tid, target->dimensions, &row.tid);
    if (vector == nullptr || is_own_row(round.batch, query, row.tid)) return;
    row.distance = canonical_distance(target->metric, query_at(round.batch, query), vector, target->dimensions);
    // NaN: the query is the zero vector. Such rows skip the heap, because NaN has no order.
    if (std::isnan(row.distance)) {
        if (!list->is_full()) list->items[list->count++] = row;
        return;
    }
    list->offer(row);
}

}  // namespace

const float* query_at(const QueryBatch* batch, uint32 query)
{
    return batch->queries + static_cast<size_t>(query) * batch->dimensions;
}

bool goes_by_rungs(const SearchTarget* target, const QueryBatch* batch, ResultKind kind)
{
    return batch->own == nullptr && has_rungs(is_complete(target->index), kind);
}

bool needs_exact_search(const SearchTarget* target, const QueryBatch* batch, const IndexState& state)
{
    const ResultKind kind = result_promise(state.meta.shape, state.options).kind;
    return goes_by_rungs(target, batch, kind) && reads_to_end(target->index, state, batch->k);
}

bool rank_results(const Round& round, uint32 query, const Result* results, uint32 count, const SearchReply& reply,
                  NeighbourList* list)
{
    if (round.batch->arbitrary[query]) {
        for (uint32 i = 0; i < count && !list->is_full(); ++i) offer_by_row(round, query, results[i], list);
        return list->is_full();
    }
    switch (reply.kind) {
        case ResultKind::exact:
            for (uint32 i = 0; i < count && !list->is_full(); ++i) offer_exact(round, query, results[i], list);
            return list->is_full();
        case ResultKind::lower_bound:
            for (uint32 i = 0; i < count; ++i) {
                const double lower = bound_distance(results[i], reply.kind, reply.bound_width).lower;
                if (list->is_full() && lower >= list->farthest()) return true;
                offer_by_row(round, query, results[i], list);
            }
            return false;
        case ResultKind::approximate:
            for (uint32 i = 0; i < count; ++i) offer_by_row(round, query, results[i], list);
            return list->is_full();
    }
    return list->is_full();
}

}  // namespace pgwarp
