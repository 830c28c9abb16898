// The plan node of a KnnFilter, as the planner makes it and the executor reads it.
#pragma once

#include "postgres/scan/limit_hint.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace pgwarp
{

struct KnnFilterPlan {
    List* bounds;  // conditions that bound the distance; rows beyond do not pass
    List* around;  // conditions that bound an expression around the distance (am/around_bound.h)
    List* around_kinds;
    bool ends_at_null;  // no row passes whose key is NULL
    double pass_rate;   // share of the scan's rows within the bounds that passes
    Plan* bitmap;       // of the rows that may pass; null: there is none
    double rate_among;  // share of its rows within the bounds that passes
    Leading leading;
};
// The form in which a plan keeps it.
Integer* leading_private(const Leading& leading);
KnnFilterPlan read_knn_filter_plan(const CustomScan* scan);
// Returns the value that the distance is compared with, and whether the distance has to be less than it.
Expr* bound_value(Node* bound, bool* strict);

}  // namespace pgwarp
