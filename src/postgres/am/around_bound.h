// Clauses that bound an expression around a distance: `1 - (v <=> q) > 0.8`.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// As a clause that is true for the nearest rows up to some row, and false or NULL for all that have a larger distance.
struct AroundBound {
    bool found;
    bool left;        // the distance is on the left of the comparison
    bool negative;    // the innermost expression is the distance's negative
    bool passes_nan;  // it is true too where the distance is not a number
};

// Reads a clause over this ordering expression of an index of the relation, with a value that is known before the
// relation is read. A clause that bounds the distance itself is not found.
AroundBound find_around_bound(PlannerInfo* root, Index relation, const RestrictInfo* info, const Node* distance);

// The form in which a plan keeps it.
int around_bound_private(const AroundBound& bound);
AroundBound read_around_bound(int kept);

// Returns a copy of the clause over the case test value in place of the innermost expression.
Expr* over_test_value(const Expr* clause, const AroundBound& bound);

}  // namespace pgwarp
