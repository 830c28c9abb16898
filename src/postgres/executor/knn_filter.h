// KnnFilter: the custom scan above an index scan of ours whose rows are filtered by conditions that the index does not
// know,
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

#include "postgres/scan/limit_hint.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

namespace pgwarp
{

extern const CustomScanMethods knn_filter_scan_methods;

bool is_knn_filter(const PlanState* node);
// The scan below a KnnFilter.
PlanState* scan_below_knn_filter(const PlanState* node);
// Tells the node of the plan above it, and makes the hint for the scan below.
void limit_knn_filter(PlanState* node, LimitHint* hint);

}  // namespace pgwarp
