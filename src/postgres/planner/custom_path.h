// Making the paths and plans of our custom scans: each has one child, whose columns its expressions refer to.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// A path over `child` that hands its rows on, in its order; costs are the child's.
CustomPath* make_custom_path(const Path* child, const CustomPathMethods* methods);

// The plan of such a path. Expressions may refer to the child's columns.
Plan* make_custom_plan(const CustomPath* path, List* targets, List* plans, List* expressions, List* settings,
                       const CustomScanMethods* methods);

}  // namespace pgwarp
