// The answer to one query of a batch where the method's own searches leave it open.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Finds the nearest rows of one query by exact continuations: behind the rows of the rungs where searches go rung by
// rung, as a scan goes on, else from the front.
void search_exactly(SearchTarget* target, QueryBatch* batch, uint32 query);

}  // namespace pgwarp
