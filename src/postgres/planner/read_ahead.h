// Decides which part of a finished plan may be read ahead: evaluated for rows that PostgreSQL may never reach, or
// before PostgreSQL has processed an earlier row.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// The position of a plan that shall be read ahead.
struct ReadingPlace {
    const PlannedStmt* statement;
    const Bitmapset* late_parameters;  // parameters that a sub-select sets when they are first read
    bool stops_early;                  // PostgreSQL may not read all of the plan's rows
};

// Whether reading a plan's rows after the first ahead has no visible effect: no expression evaluated for them has
// effects or depends on the time of its evaluation, and no row is locked or changed. If PostgreSQL may not read all
// rows, no expression may raise an error either. Work before the first row, such as all work below a sort, does not
// count.
bool may_read_ahead(const ReadingPlace& place, const Plan* plan);

// Whether an expression has parameters that other parts of the plan compute. The signature is a walker's; `context` is
// unused.
bool has_executor_parameter(Node* node, void* context);

// Whether a node (a sort, a hash table, an aggregate over all rows) reads all rows below it before it returns a row.
bool reads_all_first(const Plan* plan);

}  // namespace pgwarp
