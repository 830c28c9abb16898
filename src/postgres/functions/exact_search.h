// The exact answer to one query of a batch, for queries that the method's own searches leave open.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Finds the nearest rows of one query by exact continuations. If searches go rung by rung, it continues after the
// rungs' rows, as a scan does; otherwise, and where the rungs would leave out rows, it begins at the first row.
void search_exactly(SearchTarget* target, QueryBatch* batch, uint32 query);

}  // namespace pgwarp
