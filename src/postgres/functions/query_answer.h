// Answers batches of queries: sends as few requests as the frame size allows, then finds the visible rows of each query
// with their exact distances.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Sends the search for the batch if a connection is open, so that the engine begins early.
void start_batch(SearchTarget* target, QueryBatch* batch);

// Fills `found`: for each query the k nearest rows that the snapshot sees (fewer only if there are no more), in order
// of the operator's distance. Starts `next` meanwhile, so that the engine works while rows are looked up. Raises errors
// of the engine.
void answer_batch(SearchTarget* target, QueryBatch* batch, QueryBatch* next);

}  // namespace pgwarp
