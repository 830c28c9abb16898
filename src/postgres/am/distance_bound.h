// Expressions that are an index's distance, and clauses that bound it from above: `distance < value`, `value >=
// distance`. The distance is an ordering operator of an index, or a function that returns the same number.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// A comparison whose upper side is `value`.
struct UpperBound {
    Node* bounded;
    Node* value;
    bool strict;  // less, not less or equal
};

// Splits a comparison of floats or integers; false for other clauses.
bool split_bound(const Expr* clause, UpperBound* bound);

// Returns the value of a bound, of one of the types that split_bound() knows. A comparison with NaN is true for all
// distances, as NaN sorts last: for NaN, infinity.
double bound_as_double(Datum value, Oid type);

// Whether an expression always equals `distance`, an ordering expression of an index: the same operator with its
// arguments in either order where it commutes, its function or its commutator's, or edit_distance() where that is its
// integer form. With a bound of the expression, also edit_distance(a, b, at_most) with a limit that is no less.
bool is_same_distance(Node* expression, const Node* distance, Node* bound = nullptr);

// Whether an expression always is the negative of `distance`: inner_product() where the index orders by that.
bool is_negative_distance(const Node* expression, const Node* distance);

// Whether an expression has the same value for all rows of the relation, and may be evaluated before it is read.
bool is_known_before(PlannerInfo* root, Index relation, Node* expression);

// Returns the ordering expression of the index, with the key on the left, that equals the bounded side of a clause;
// null where there is none, or where its query or value are volatile or read the index's own relation.
OpExpr* find_bounded_distance(PlannerInfo* root, const IndexOptInfo* index, const RestrictInfo* info);

// Returns the ordering expression of the index, with the key on the left, that an expression always equals, or, with
// *negative, whose negative it is: inner_product() where the index orders by that. Null where there is none, or where
// its query is volatile or reads the index's own relation.
OpExpr* find_ordering_distance(PlannerInfo* root, const IndexOptInfo* index, Node* expression, bool* negative);

// Whether a clause bounds this ordering expression of an index of the relation, by a value that is known before the
// relation is read.
bool bounds_distance(PlannerInfo* root, Index relation, const RestrictInfo* info, const Node* distance);

}  // namespace pgwarp
