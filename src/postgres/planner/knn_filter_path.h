// Paths of KnnFilter (executor/knn_filter.h).
#pragma once

#include "numeric/metric.h"
#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init, after the hooks that add index paths.
void init_knn_filter();

// Returns the KnnFilter path that replaces an index path; paths without a filter and paths of other access methods are
// returned unchanged.
Path* with_knn_filter(PlannerInfo* root, RelOptInfo* rel, Path* path);

// Returns the clauses (RestrictInfo) of a KnnFilter path that bound the distance and may end the scan.
List* bounds_of_knn_filter(const Path* path);

// Returns the path of a KnnFilter whose scan searches among the rows of a bitmap of other indexes, given one without.
// share: of the table's rows that are in the bitmap. Costs are the caller's.
CustomPath* with_bitmap(const Path* filter, BitmapHeapPath* bitmap, double share);

// Returns the path below a KnnFilter without a bitmap; null for any other path.
Path* path_below_knn_filter(const Path* path);

// Whether searches of the index, which is one of pgwarp, take a bound of the distance, and so miss no row within it.
// metric: null, or receives that of an index whose searches do.
bool searches_within(const IndexOptInfo* info, Metric* metric = nullptr);

}  // namespace pgwarp
