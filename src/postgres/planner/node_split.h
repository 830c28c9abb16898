// Splits a plan node at the first of its conditions, or else its target list, with a search that can be batched: the
// node keeps the conditions before it, and a KnnBatch above evaluates the rest.
#pragma once

#include "postgres/executor/knn_batch_plan.h"
#include "postgres/planner/read_ahead.h"

namespace pgwarp
{

// The point where a node is split, and the batch that is read ahead there.
struct Split {
    KnnBatchPlan batch;
    List* kept;   // conditions that stay in the node
    List* moved;  // later conditions, which the KnnBatch evaluates
};

// Whether a node is a KnnBatch.
bool is_batch_node(const Plan* plan);
// Whether a node's last conditions and its target list can be evaluated above it.
bool may_split(const Plan* plan);
// Find the first condition, or else the target list, with a search that can be batched and is not batched yet.
bool find_split(const PlannedStmt* statement, Plan* plan, Split* split);
// Whether the result is the same when the kept conditions are evaluated for many rows before the others for each row.
bool may_apply(const ReadingPlace& place, const Split& split, Plan* plan);
// Returns a KnnBatch with the moved conditions and the target list, over the node with its columns and the kept
// conditions. `number`: of the new node.
Plan* split_node(Plan* node, const Split& split, int number);

}  // namespace pgwarp
