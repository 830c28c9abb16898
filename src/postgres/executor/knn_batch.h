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
}

namespace pgwarp
{

extern const CustomScanMethods knn_batch_scan_methods;
bool is_knn_batch(const PlanState* node);

}  // namespace pgwarp
