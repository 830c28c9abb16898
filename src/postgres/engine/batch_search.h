// Many searches of one index with equal settings, in as few requests as the frames allow.
#pragma once

#include "postgres/engine/loader.h"

namespace pgwarp
{

// What is the same for all answers of one request.
struct BatchPart {
    SearchRequest request;  // as it was answered: k, effort, generation
    SearchReply reply;
};

// The answer to one query, in the engine's order.
struct BatchAnswer {
    const BatchPart* part;  // null: the index has no row
    Result* results;
    const uint64* places;  // of the results, or null
    uint32 count;
};

// Fills a request's own part: k, effort, settings. Called for each request, with the state it is sent under.
using PlanSearch = void (*)(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);

// Searches for each of queries[count][dimensions], as the engine wants them. The answers and what they point to are
// palloc'ed in the current memory context.
BatchAnswer* search_batch(Relation index, PlanSearch plan, uint32 wanted, const float* queries, uint32 count,
                          uint32 dimensions);

}  // namespace pgwarp
