// One search of some queries of a batch, and how its results become their nearest rows.
#pragma once

#include "postgres/functions/neighbour_list.h"
#include "postgres/scan/search_plan.h"

namespace pgwarp
{

inline constexpr uint32 continue_after = 1024;  // rows; from there on the exact scan costs less

struct Round {
    SearchTarget* target;
    QueryBatch* batch;
    const uint32* queries;  // positions in the batch
    uint32 count;
    uint32 wanted;
    bool complete;  // the method's searches leave no row out
};

// The query as the operator sees it.
const float* query_at(const QueryBatch* batch, uint32 query);

// Whether the searches for a batch go rung by rung (protocol/rungs.h). Those for rows of the table don't.
bool goes_by_rungs(const SearchTarget* target, const QueryBatch* batch, ResultKind kind);

// Takes the results of one query, nearest first, into the list. True when no row beyond them could change it.
bool rank_results(const Round& round, uint32 query, const Result* results, uint32 count, const SearchReply& reply,
                  NeighbourList* list);

}  // namespace pgwarp
