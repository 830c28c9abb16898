// KnnBatch for correlated sub-plans, which the planner's join hook never sees:
//
//   SELECT q.id, ARRAY(SELECT i.id FROM items i ORDER BY i.v <-> q.v LIMIT 10) FROM q
//   SELECT q.id FROM q WHERE q.label IN (SELECT i.label FROM items i ORDER BY i.v <-> q.v LIMIT 10)
//
// Once such a statement is planned, the node that evaluates the sub-plan is split in two: the node itself, which gives
// the columns of the rows that its conditions before the sub-plan let through, and a KnnBatch over it, which reads
// ahead, evaluates the conditions from the sub-plan on, in their order, and the target list. PostgreSQL caches, shows
// and executes this plan.
//
// Only the finished plan tells whether rows may be read ahead (read_ahead.h): it shows what is above, and what is
// evaluated below. So the KnnBatch of a lateral join is taken out again here, where they may not.
#pragma once

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init.
void init_subplan_batch();

}  // namespace pgwarp
