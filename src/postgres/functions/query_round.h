// One search for some queries of a batch, and the ranking of its results.
#pragma once

#include "postgres/functions/neighbour_list.h"
#include "postgres/scan/search_plan.h"

namespace pgwarp
{

// Rows beyond which exact continuations cost less than deeper searches.
inline constexpr uint32 continue_after = 1024;

// Some queries of a batch that one request searches for.
struct Round {
    SearchTarget* target;
    QueryBatch* batch;
    const uint32* queries;  // positions in the batch
    uint32 count;
    uint32 wanted;
    bool complete;  // the method's searches find every row
};

// Returns the query in the operator's form.
const float* query_at(const QueryBatch* batch, uint32 query);

// Whether the searches for a batch go rung by rung (protocol/rungs.h). Searches for rows of the table do not.
bool goes_by_rungs(const SearchTarget* target, const QueryBatch* batch, ResultKind kind);

// Whether the batch asks for so many rows that rungs would leave out some of them (reads_to_end() in search_plan.h), so
// that each query is searched for exactly.
bool needs_exact_search(const SearchTarget* target, const QueryBatch* batch, const IndexState& state);

// Takes the results of one query, nearest first, into the list. Returns true when no further row could change the list.
bool rank_results(const Round& round, uint32 query, const Result* results, uint32 count, const SearchReply& reply,
                  NeighbourList* list);

}  // namespace pgwarp
