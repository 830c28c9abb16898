#include "postgres/engine/batch_search.h"

#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

constexpr uint32 most_bytes = 1U << 20;  // of queries in a request, and of results in a reply

// How many queries one request may hold, so that it and its reply fit into a frame.
uint32 most_queries(uint32 dimensions, const SearchRequest& request)
{
    const uint64 result_bytes = sizeof(Result) + (request.want_places != 0 ? sizeof(uint64) : 0);
    const uint64 by_query = most_bytes / (sizeof(float) * dimensions);
    const uint64 by_result = most_bytes / (result_bytes * request.k + sizeof(uint32));
    return static_cast<uint32>(Max(uint64{1}, Min(by_query, by_result)));
}

// Copy a reply's results, and give each query its own.
void take_answers(const EngineReply& reply, BatchPart* part, uint32 count, BatchAnswer* answers)
{
    const uint64 counts_bytes = MAXALIGN(sizeof(uint32) * uint64{count});
    const uint64 results_at = sizeof(SearchReply) + counts_bytes;
    uint64 total = 0;
    if (reply.payload_bytes >= results_at) {
        memcpy(&part->reply, reply.payload, sizeof(SearchReply));
        const auto* counts = reinterpret_cast<const uint32*>(reply.payload + sizeof(SearchReply));
        for (uint32 i = 0; i < count; ++i) {
            answers[i].count = counts[i];
            total += counts[i];
        }
    }
    const uint64 places_at = results_at + sizeof(Result) * total;
    const bool has_places = part->reply.has_places != 0;
    const uint64 end = places_at + (has_places ? sizeof(uint64) * total : 0);
    if (part->reply.query_count != count || reply.payload_bytes < end) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a malformed reply to a search")));
    }
    auto* copy = static_cast<char*>(palloc(Max(sizeof(Result), end - results_at)));
    memcpy(copy, reply.payload + results_at, end - results_at);
    auto* results = reinterpret_cast<Result*>(copy);
    const auto* places = has_places ? reinterpret_cast<const uint64*>(copy + (places_at - results_at)) : nullptr;
    for (uint32 i = 0; i < count; ++i) {
        answers[i].part = part;
        answers[i].results = results;
        answers[i].places = places;
        results += answers[i].count;
        if (places != nullptr) places += answers[i].count;
    }
}

}  // namespace

BatchAnswer* search_batch(Relation index, PlanSearch plan, uint32 wanted, const float* queries, uint32 count,
                          uint32 dimensions)
{
    auto* answers = static_cast<BatchAnswer*>(palloc0(sizeof(BatchAnswer) * Max(1U, count)));
    for (uint32 first = 0; first < count;) {
        const IndexState state = read_index_state(index);
        if (index_is_empty(state)) break;
        auto* part = static_cast<BatchPart*>(palloc0(sizeof(BatchPart)));
        SearchRequest& request = part->request;
        plan(index, state, wanted, &request);
        request.query_count = Min(count - first, most_queries(dimensions, request));
        request.dimensions = dimensions;
        request.load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
        request.fault = static_cast<uint16>(setting_fault);
        const EngineReply reply = engine_search(index, state, &request, queries + uint64{first} * dimensions);
        take_answers(reply, part, request.query_count, answers + first);
        first += request.query_count;
    }
    return answers;
}

}  // namespace pgwarp
