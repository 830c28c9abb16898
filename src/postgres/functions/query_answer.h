// Answers batches of queries: as few requests as frames allow, then the visible rows of each with their exact
// distances.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Lets the engine begin with the batch, where that can be.
void start_batch(SearchTarget* target, QueryBatch* batch);

// Fills `found`: for each query the k nearest rows that the snapshot sees (fewer only where there are no more), in
// order of the operator's distance. `next` is started on the way, so that the engine works while rows are looked up.
void answer_batch(SearchTarget* target, QueryBatch* batch, QueryBatch* next);

}  // namespace pgwarp
