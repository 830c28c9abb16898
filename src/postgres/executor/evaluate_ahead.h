// Decides which expressions may be evaluated ahead: for a row that PostgreSQL may never reach, or before PostgreSQL has
// processed an earlier row.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace pgwarp
{

// Whether an expression, or a list of expressions joined by AND, raises no error for any row, has no effects, and
// always gives the same value: it consists of columns, constants, a statement's parameters, and immutable leakproof
// functions of these. PostgreSQL defines leakproof functions as raising no error about their arguments.
bool may_evaluate_ahead(Node* expression);

// Whether such an expression may contain this kind of node. All other kinds may raise an error.
bool is_harmless(Node* node);

}  // namespace pgwarp
