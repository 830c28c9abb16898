// Which part of a finished plan may be read ahead: evaluated for rows that PostgreSQL may never reach, or before what
// it does with an earlier row.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// Where a plan is that is to be read ahead.
struct ReadingPlace {
    const PlannedStmt* statement;
    const Bitmapset* late_parameters;  // those that a sub-select gives the first time they are asked for
    bool stops_early;                  // PostgreSQL may not want all of the plan's rows
};

// Whether reading a plan's rows after the first ahead has no visible effect: nothing that is evaluated for them has
// effects or depends on when it is evaluated, and no row is locked or changed. Where PostgreSQL may not want all rows,
// nothing raises an error either. Work before the first row, such as all below a sort, does not count.
bool may_read_ahead(const ReadingPlace& place, const Plan* plan);

// Whether an expression has parameters that other parts of the plan compute. `context` is unused: it is a walker too.
bool has_executor_parameter(Node* node, void* context);

// Whether a node (a sort, a hash table, an aggregate over all rows) reads all rows below before its first row comes.
bool reads_all_first(const Plan* plan);

}  // namespace pgwarp
