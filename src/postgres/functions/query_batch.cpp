#include "postgres/functions/query_batch.h"

#include "postgres/client/batch_search.h"
#include "postgres/scan/search_plan.h"

namespace pgwarp
{

// Returns the number of queries that fit one request for `wanted` rows each.
static uint32 room_for(const SearchTarget* target, bool own_rows, uint32 wanted)
{
    SearchRequest request = {};
    (own_rows ? plan_normal_search : plan_rungs)(target->index, read_index_state(target->index), wanted, &request);
    return queries_per_request(target->dimensions, request);
}

uint32 rows_searched_first(const SearchTarget* target, const QueryBatch* batch)
{
    return Min(batch->k + target->spare + (batch->own != nullptr ? 1 : 0), max_k);
}

QueryBatch* make_query_batch(const SearchTarget* target, uint32 k, bool rows)
{
    auto* batch = static_cast<QueryBatch*>(palloc0(sizeof(QueryBatch)));
    batch->k = k;
    batch->dimensions = target->dimensions;
    // The spare rows grow later, so the first batch is the largest.
    const uint32 most = room_for(target, rows, Min(max_k, Max(k, 1U) + (rows ? 1 : 0)));
    const Size vector_bytes = sizeof(float) * target->dimensions * most;
    batch->allocated = most;
    batch->capacity = most;
    batch->numbers = static_cast<int64*>(palloc(sizeof(int64) * most));
    batch->own = rows ? static_cast<Tid*>(palloc(sizeof(Tid) * most)) : nullptr;
    batch->arbitrary = static_cast<bool*>(palloc(sizeof(bool) * most));
    batch->queries = static_cast<float*>(palloc(vector_bytes));
    batch->sent = target->metric == Metric::cosine ? static_cast<float*>(palloc(vector_bytes)) : batch->queries;
    batch->found = static_cast<Neighbour*>(palloc(sizeof(Neighbour) * Max(k, 1U) * most));
    batch->found_count = static_cast<uint32*>(palloc0(sizeof(uint32) * most));
    batch->start = static_cast<BatchStart*>(palloc0(sizeof(BatchStart)));
    return batch;
}

void clear_query_batch(const SearchTarget* target, QueryBatch* batch)
{
    memset(batch->found_count, 0, sizeof(uint32) * batch->count);
    batch->start->ahead.id = 0;
    batch->count = 0;
    if (target->spare > 0)
        batch->capacity =
            Min(batch->allocated, room_for(target, batch->own != nullptr, rows_searched_first(target, batch)));
}

void add_query(QueryBatch* batch, const SearchTarget* target, int64 number, const float* vector)
{
    const uint32 at = batch->count++;
    const uint32 dimensions = batch->dimensions;
    float* query = batch->queries + static_cast<size_t>(at) * dimensions;
    batch->numbers[at] = number;
    batch->arbitrary[at] = false;
    memcpy(query, vector, sizeof(float) * dimensions);
    if (target->metric != Metric::cosine) return;
    float* sent = batch->sent + static_cast<size_t>(at) * dimensions;
    const double norm = canonical_norm(query, dimensions);
    batch->arbitrary[at] = norm == 0;
    for (uint32 i = 0; i < dimensions; ++i) sent[i] = norm == 0 ? 0.0F : static_cast<float>(query[i] / norm);
    if (norm == 0) sent[0] = 1.0F;
}

}  // namespace pgwarp
