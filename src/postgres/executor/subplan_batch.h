// KnnBatch for correlated sub-plans, which the planner's join hook never sees:
//
//   SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.v LIMIT 10) FROM q
//   SELECT q.id FROM q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 10)
//
// Before such a plan is executed, the node that evaluates the sub-plan is split in two: the node itself, which gives
// the columns of the rows that its conditions before the sub-plan let through, and a KnnBatch over it, which reads
// ahead, evaluates the conditions from the sub-plan on, in their order, and the target list.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "executor/execdesc.h"
}

namespace pgwarp
{

// Puts a changed copy of the plan into the query where something can be batched; cached plans stay as they are.
// flags: of ExecutorStart.
void batch_subplans(QueryDesc* query, int flags);

}  // namespace pgwarp
