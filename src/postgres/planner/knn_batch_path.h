// Paths of KnnBatch (executor/knn_batch.h).
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_knn_batch();

// LIMIT or OFFSET as the plan carries it: a null constant where there is none, or none that may be evaluated ahead.
Expr* row_count_ahead(Node* count);

// Whether the statement that is planned will be looked through (subplan_batch.h) for joins that must not be batched.
extern bool knn_batch_plans_are_checked;

}  // namespace pgwarp
