// The bounds of a KnnFilter in the executor: the largest distance that passes, and whether a row, and so all rows that
// are farther, are beyond the bounds of expressions around the distance. No condition is evaluated for a row before its
// turn: the latter are evaluated for what the scan knows of the distance.
#pragma once

#include "postgres/executor/knn_filter_plan.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

struct FilterBounds {
    List* plain;   // of the distance
    List* around;  // of expressions around it (am/around_bound.h)
};

enum class Beyond : uint8 {
    no,
    distances,  // no row passes that has as large a distance, but one whose distance is not a number may
    all,
};

// Returns the bounds of a KnnFilter, in the memory of its plan state.
FilterBounds begin_filter_bounds(const KnnFilterPlan& plan, PlanState* node);
// Returns the least of the plain bounds; NaN when one of them is null.
double find_bound(const FilterBounds& bounds, ExprContext* context);
// distance: a number that is no larger than that of the row.
Beyond find_beyond(const FilterBounds& bounds, ExprContext* context, double distance);

}  // namespace pgwarp
