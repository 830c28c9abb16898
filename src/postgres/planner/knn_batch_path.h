// Paths of KnnBatch (executor/knn_batch.h).
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// A search in a batch costs about this share of a single search.
inline constexpr double batched_share = 0.2;

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_knn_batch();

// Returns LIMIT or OFFSET as the plan holds it: a null constant if there is none or if it must not be evaluated ahead.
Expr* row_count_ahead(Node* count);

// Returns a bound of the distance in the same way.
Expr* bound_ahead(Node* bound);

// Whether subplan_batch.h will check the finished plan of this statement for joins that must not be batched.
extern bool knn_batch_plans_are_checked;

}  // namespace pgwarp
