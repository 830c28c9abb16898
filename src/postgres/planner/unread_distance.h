// The distance that a statement orders by, where nothing reads its value:
//
//   SELECT id FROM items ORDER BY v <-> $1 LIMIT 10
//
// PostgreSQL keeps the sort key as a column of all nodes, so that the index scan computes the operator for each row,
// out of a value that is often TOASTed, although the scan returns rows in order and the column is thrown away. In such
// plans the column is a NULL.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace pgwarp
{

// Replaces the distance in a finished plan of an index scan, or of LIMIT over one. Nodes that read sort keys, such as
// WITH TIES, and the locks of FOR UPDATE keep it.
void drop_unread_distance(PlannedStmt* statement);

}  // namespace pgwarp
