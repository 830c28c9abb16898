// KnnFilter: the custom scan above a scan of a pgwarp index whose rows are filtered by conditions that the index cannot
// evaluate,
//   WHERE kind = 3 AND v <-> q < r ORDER BY v <-> q LIMIT k
// It evaluates all conditions of the relation, in PostgreSQL's order, so none moves before another. It tells the scan
// the number of rows it needs and the share of them that passes. For an approximate search it holds rows back until k
// rows have passed within the search's depth; if fewer pass, the scan searches deeper, and new rows are merged with
// held rows. So rows come in order, none twice, and min(k, passing) of them. Rows come nearest first and NULLs last: if
// a bound of the distance, or IS NOT NULL of the index's key, may be evaluated before the other conditions, the first
// row beyond it ends the scan.
//
//   Limit
//     ->  Custom Scan (KnnFilter)
//           Filter: ((kind = 3) AND ((v <-> ...) < ...))
//           While: ((v <-> ...) < ...)
//           ->  Index Scan using ... Order By: (v <-> ...)
//
// Where another index tells which rows may pass, it has that index's bitmap as a second child (knn_bitmap.h):
//           ->  Bitmap Index Scan on ... Index Cond: (kind = 3)
//
// Where rows without a distance have to come first, as for `ORDER BY 1 - (v <=> q) DESC`, it has the scan return them
// before the others, and lets them pass at once. Without conditions the node does that alone, and is named KnnOrder:
//
//   Limit
//     ->  Custom Scan (KnnOrder)
//           First: NULL, NaN
//           ->  Index Scan using ... Order By: (v <=> ...)
#pragma once

#include "postgres/scan/limit_hint.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

namespace pgwarp
{

extern const CustomScanMethods knn_filter_scan_methods;
extern const CustomScanMethods knn_order_scan_methods;

// Also for a KnnOrder.
bool is_knn_filter(const PlanState* node);
// Returns the scan below a KnnFilter.
PlanState* scan_below_knn_filter(const PlanState* node);
// Whether the scan searches among the rows of a bitmap: then it searches by itself.
bool has_knn_bitmap(const PlanState* node);
// Tells the node about the plan above it, and turns `hint` into the hint for the scan below.
void limit_knn_filter(PlanState* node, LimitHint* hint);

}  // namespace pgwarp
