// KnnBatch: the custom scan over the outer side of a k-NN join. It reads ahead, has all its rows' searches answered by
// one request, and hands the rows on one at a time; the join, its inner index scan, filters, LIMIT and visibility stay
// PostgreSQL's own.
//
//   Nested Loop
//     ->  Custom Scan (KnnBatch)
//           ->  (outer side)
//     ->  Limit
//           ->  Index Scan using ... Order By: (v <-> outer.v)
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_knn_batch();

// The content of the plan node. custom_exprs: the query vector over the outer row, LIMIT and OFFSET, all of which raise
// no error (read_ahead.h). custom_private: the indexes' oids, whether rows are filtered below the LIMIT, and whether
// each row is to be read by itself.
struct KnnBatchPlan {
    Expr* query;
    Expr* limit;
    Expr* offset;
    List* indexes;
    bool filtered;
    bool alone = false;
};
// LIMIT or OFFSET as the plan carries it: a null constant where there is none, or none that may be evaluated ahead.
Expr* row_count_ahead(Node* count);
List* knn_batch_expressions(const KnnBatchPlan& plan);
List* knn_batch_private(const KnnBatchPlan& plan);
KnnBatchPlan read_knn_batch_plan(const CustomScan* scan);

// Whether the statement that is planned will be looked through (subplan_batch.h) for joins that must not be batched.
extern bool knn_batch_plans_are_checked;

extern const CustomScanMethods knn_batch_scan_methods;
bool is_knn_batch(const PlanState* node);

}  // namespace pgwarp
