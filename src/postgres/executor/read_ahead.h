// What may be evaluated ahead: for a row that PostgreSQL may never reach, or before what it does with an earlier row.
// That is asked of expressions, and of the part of a finished plan whose rows are to be read ahead.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// Whether an expression, or a list of them that AND joins, raises no error whatever its row holds, has no effects, and
// gives the same value whenever it is evaluated: columns, constants, a statement's parameters, and immutable functions
// of these that are leakproof, which PostgreSQL defines as raising no error about their arguments.
bool may_evaluate_ahead(Node* expression);

// Where a plan is that is to be read ahead.
struct ReadingPlace {
    const PlannedStmt* statement;
    const Bitmapset* late_parameters;  // those that a sub-select gives the first time they are asked for
    bool stops_early;                  // PostgreSQL may not want all of the plan's rows
};

// Whether nobody can tell that a plan's rows after the first were read ahead: nothing that is evaluated for them has
// effects or depends on when it is evaluated, and no row is locked or changed. Where PostgreSQL may not want all rows,
// nothing raises an error either. What is done by the time of the first row, such as all below a sort, does not count.
bool may_read_ahead(const ReadingPlace& place, const Plan* plan);

// Whether all is read of what is below a sort, a hash table or an aggregate over all rows, before its first row comes.
bool reads_all_first(const Plan* plan);

}  // namespace pgwarp
