// The plan node of a KnnFilter, as the planner makes it and the executor reads it.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace pgwarp
{

struct KnnFilterPlan {
    List* bounds;      // conditions that bound the distance, beyond which nothing passes
    double pass_rate;  // of the scan's rows within the bounds
};
KnnFilterPlan read_knn_filter_plan(const CustomScan* scan);
// The value that the distance is compared with.
Expr* bound_value(Node* bound);

// `distance < value`, or the other way round: 0 when the clause is neither, else the place of the value.
int find_bound_value(const OpExpr* comparison);

}  // namespace pgwarp
