// KnnBatch: the custom scan over the outer side of a k-NN join. It reads ahead, sends the searches of all its rows in
// one request, and returns the rows one at a time. PostgreSQL executes the join, its inner index scan, filters, LIMIT
// and visibility checks.
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
