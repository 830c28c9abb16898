// KnnFilter: the custom scan above an index scan of ours whose rows are filtered by what the index does not know,
//   WHERE kind = 3 AND v <-> q < r ORDER BY v <-> q LIMIT k
// It evaluates all conditions of the relation, in PostgreSQL's order, so none passes another. It tells the scan how
// many rows it needs and which share of them passes. Of an approximate search it holds rows back until k of them have
// passed within what the search was for; else the scan searches deeper, and what comes is merged with what is held. So
// rows come in order, none twice, and min(k, passing) of them. Rows come nearest first, so where a bound of the
// distance may be looked at before the other conditions, the first row beyond it is the end.
//
//   Limit
//     ->  Custom Scan (KnnFilter)
//           Filter: ((kind = 3) AND ((v <-> ...) < ...))
//           While: ((v <-> ...) < ...)
//           ->  Index Scan using ... Order By: (v <-> ...)
#pragma once

#include "postgres/executor/limit_hint.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init, after those that add index paths.
void init_knn_filter();

extern const CustomScanMethods knn_filter_scan_methods;

// The path below a KnnFilter; null for any other path.
Path* path_below_knn_filter(const Path* path);

bool is_knn_filter(const PlanState* node);
// The scan below a KnnFilter.
PlanState* scan_below_knn_filter(const PlanState* node);
// Tells the node of the plan above it, and makes the hint for the scan below.
void limit_knn_filter(PlanState* node, LimitHint* hint);

// What the plan says; knn_filter_path.cpp.
struct KnnFilterPlan {
    List* bounds;      // conditions that bound the distance, beyond which nothing passes
    double pass_rate;  // of the scan's rows within the bounds
};
KnnFilterPlan read_knn_filter_plan(const CustomScan* scan);
// The value that the distance is compared with.
Expr* bound_value(Node* bound);

}  // namespace pgwarp
