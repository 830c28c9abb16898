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
// compared with, over the outer row; null for IS [NOT] NULL, and where the value is that of the scan itself. False for
// a condition of another kind.
bool add_batch_key(const Expr* condition, int column, Expr* value, KnnBatchPlan* plan);
// Adds all conditions of an index path (IndexClause), with the values that they have there.
bool add_batch_keys(const List* clauses, KnnBatchPlan* plan);
// The right side of such a condition; null for IS [NOT] NULL and for other kinds.
Node* value_of_condition(const Expr* condition);

// Whether the value of a condition is the same for all outer rows, whatever it takes to evaluate it. Then it is never
// evaluated ahead: the scan's own value is taken, once a scan has begun.
bool is_value_of_scan(Node* value);

struct BatchKeys;
// Returns the keys of the plan for its index; null if there are none.
BatchKeys* prepare_batch_keys(const KnnBatchPlan& plan, Relation index, PlanState* node);
// Whether values are taken from the scan, and whether no scan has begun so far.
bool takes_values_of_scan(const BatchKeys* keys);
bool awaits_scan(const BatchKeys* keys);
// Awaits the next scan: that of another execution, whose values may be others.
void await_scan(BatchKeys* keys);
// Takes these values from the keys of a scan that begins. The keys of another scan of the index change nothing, unless
// they are of the same kind: then the searches ahead are for other rows than the scans ask for, and serve none.
void note_scan_keys(BatchKeys* keys, const ScanKeyData* given, int count);
// Reads the keys of the row in the context. Memory of the predicate is palloc'ed.
FilterKeys read_batch_keys(BatchKeys* keys, Relation index, ExprContext* context);

}  // namespace pgwarp
