// The bitmap of other indexes below a KnnFilter: a part of the node, which runs the plan of a Bitmap Heap Scan without
// the heap scan. The scan of the pgwarp index searches only among rows whose addresses are in the bitmap. Bitmaps may
// be lossy, and the node evaluates all conditions of the relation for the rows that it returns; so a bitmap has to have
// each row that passes, and nothing more.
#pragma once

#include "postgres/bitmap/search_tids.h"

extern "C" {
#include "commands/explain.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

struct KnnBitmap;

// plan: a Bitmap Index Scan, or a BitmapAnd or BitmapOr of some.
KnnBitmap* begin_knn_bitmap(Plan* plan, EState* executor, int flags);
PlanState* plan_of_knn_bitmap(const KnnBitmap* bitmap);
// Returns the addresses, valid until the end or until a rescan changes the bitmap. Null when they are too many to be
// searched among: then any row may pass.
const SearchTids* tids_of_knn_bitmap(KnnBitmap* bitmap);
// The share of the bitmap's rows that the planner expected, given its table: a lossy one has more.
double expected_share(const KnnBitmap* bitmap, Relation table);
// Keeps the bitmap unless one of the parameters is its own.
void rescan_knn_bitmap(KnnBitmap* bitmap, const Bitmapset* parameters);
void end_knn_bitmap(KnnBitmap* bitmap);
// For EXPLAIN (ANALYZE): the addresses, and the pages of the largest bitmap.
void explain_knn_bitmap(const KnnBitmap* bitmap, ExplainState* explanation);

}  // namespace pgwarp
