// Which expressions may be evaluated ahead: for a row that PostgreSQL may never reach, or before it is through with an
// earlier row.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// Whether an expression, or a list of them that AND joins, raises no error whatever its row holds, has no effects, and
// gives the same value whenever it is evaluated: columns, constants, a statement's parameters, and immutable functions
// of these that are leakproof, which PostgreSQL defines as raising no error about their arguments.
bool may_evaluate_ahead(Node* expression);

// Whether a node is of a kind of which such an expression may consist. One that isn't listed may raise an error.
bool is_harmless(Node* node);

}  // namespace pgwarp
