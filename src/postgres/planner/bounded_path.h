// Index paths for clauses that bound a distance, without ORDER BY:
//
//   SELECT id FROM titles WHERE title <~~> 'neighbour' <= 2
//   SELECT a.id, b.id FROM titles a JOIN titles b ON edit_distance(a.title, b.title) <= 2
//
// PostgreSQL uses an index for an operator that returns boolean, and the clause's comparison is no operator of the
// index. So the hook adds the path in order of the distance; the KnnFilter above it (knn_filter_path.h) ends the scan
// at the bound, and gives the bound to the search. Only for indexes whose searches miss no row within a bound.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init.
void init_bounded_path();

}  // namespace pgwarp
