// Recognises index paths that pgwarp cannot execute, by their estimated costs.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Whether amcostestimate marked a path of a pgwarp index as impossible: the path orders by no distance or by several,
// or there is no engine. PostgreSQL makes such paths nevertheless.
bool is_forbidden_path(const IndexPath* path);

}  // namespace pgwarp
