// Search keys of the scans that a KnnBatch searches ahead for: `tenant = outer.tenant`. They become a predicate of each
// outer row's query.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/executor/knn_batch_plan.h"
#include "postgres/scan/filter_keys.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Adds a condition of an index scan to the plan's keys; the indexed expression is on its left. `value`: what is
// compared with, over the outer row; null for IS [NOT] NULL. False for a condition of another kind.
bool add_batch_key(const Expr* condition, int column, Expr* value, KnnBatchPlan* plan);
// The right side of such a condition; null for IS [NOT] NULL and for other kinds.
Node* value_of_condition(const Expr* condition);

struct BatchKeys;
// Returns the keys of the plan for its index; null if there are none.
BatchKeys* prepare_batch_keys(const KnnBatchPlan& plan, Relation index, PlanState* node);
// Reads the keys of the row in the context. Memory of the predicate is palloc'ed.
FilterKeys read_batch_keys(BatchKeys* keys, Relation index, ExprContext* context);

}  // namespace pgwarp
