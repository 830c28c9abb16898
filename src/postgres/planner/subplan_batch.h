// KnnBatch for correlated sub-plans, which the planner's join hook does not see:
//
//   SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.v LIMIT 10) FROM q
//   SELECT q.id FROM q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 10)
//
// After such a statement is planned, the node that evaluates the sub-plan is split in two. The node itself returns the
// columns of the rows that pass its conditions before the sub-plan. A KnnBatch over it reads ahead and evaluates the
// remaining conditions, in their order, and the target list. PostgreSQL caches, shows and executes this plan.
//
// Only the finished plan shows whether rows may be read ahead (read_ahead.h): the nodes above and the expressions below
// are known. So the KnnBatch of a lateral join is removed here where rows may not be read ahead.
#pragma once

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init.
void init_subplan_batch();

}  // namespace pgwarp
