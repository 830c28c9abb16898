// Makes the paths and plans of pgwarp's custom scans: each has one child, and its expressions refer to the child's
// columns.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Makes a path over `child` that returns the child's rows in the child's order; costs are the child's.
CustomPath* make_custom_path(const Path* child, const CustomPathMethods* methods);

// Makes the plan of such a path. Expressions may refer to the child's columns.
Plan* make_custom_plan(const CustomPath* path, List* targets, List* plans, List* expressions, List* settings,
                       const CustomScanMethods* methods);

// The usual number of scans in a nested loop over these relations, for the cost.
double loops_over(const PlannerInfo* root, Relids outer);

}  // namespace pgwarp
