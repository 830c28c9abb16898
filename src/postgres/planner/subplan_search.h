// Sub-plans that search: scans of pgwarp indexes under a LIMIT whose query vector comes from the row for which the
// sub-plan is evaluated.
#pragma once

#include "postgres/executor/knn_batch_plan.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace pgwarp
{

// Whether any sub-plan of the statement may be such a sub-plan.
bool any_subplan_searches(const PlannedStmt* statement);

// Describes a KnnBatch below the evaluation of an expression, for the first sub-plan in it whose search can be batched.
// False when there is none, or when the batch `own` (null: none) already answers one. Columns refer to the expression's
// node.
bool plan_expression_batch(const PlannedStmt* statement, Node* expression, const KnnBatchPlan* own,
                           KnnBatchPlan* batch);

}  // namespace pgwarp
