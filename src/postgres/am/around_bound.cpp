#include "postgres/am/around_bound.h"

#include "postgres/am/distance_bound.h"
#include "postgres/am/distance_steps.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
}

namespace pgwarp
{

namespace
{

constexpr int is_left = 1;
constexpr int is_negative = 2;
constexpr int is_true_for_nan = 4;

// The expression inside all steps, and the list of arguments that it is in.
struct Innermost {
    Node* expression;
    List* place;
    int steps;
    bool reversed;
    bool never_fails;
};

Innermost find_innermost(Node* expression, List* place)
{
    Innermost found = {expression, place, 0, false, true};
    for (;;) {
        const DistanceStep step = step_inwards(found.expression);
        if (step.argument == nullptr) return found;
        if (step.direction == Direction::reversed) found.reversed = !found.reversed;
        found.never_fails = found.never_fails && step.never_fails;
        found.expression = step.argument;
        found.place = step.place;
        ++found.steps;
    }
}

// Whether a side of a comparison bounds the distance from above: the side is less than the other one, or greater.
bool bounds_side(Node* side, bool less, const Node* distance, AroundBound* bound)
{
    const Innermost inner = find_innermost(side, NIL);
    bound->negative = is_negative_distance(inner.expression, distance);
    if (!bound->negative && !is_same_distance(inner.expression, distance)) return false;
    const bool around = inner.steps > 0 || bound->negative;
    const bool reversed = inner.reversed != bound->negative;
    bound->passes_nan = reversed;
    return around && inner.never_fails && reversed != less;
}

}  // namespace

AroundBound find_around_bound(PlannerInfo* root, Index relation, const RestrictInfo* info, const Node* distance)
{
    AroundBound bound = {};
    UpperBound split;
    if (info->pseudoconstant || !split_bound(info->clause, &split)) return bound;
    const void* first = linitial(castNode(OpExpr, info->clause)->args);
    if (bounds_side(split.bounded, true, distance, &bound)) {
        bound.found = is_known_before(root, relation, split.value);
        bound.left = split.bounded == first;
    } else if (bounds_side(split.value, false, distance, &bound)) {
        bound.found = is_known_before(root, relation, split.bounded);
        bound.left = split.value == first;
    }
    return bound;
}

int around_bound_private(const AroundBound& bound)
{
    return (bound.left ? is_left : 0) | (bound.negative ? is_negative : 0) | (bound.passes_nan ? is_true_for_nan : 0);
}

AroundBound read_around_bound(int kept)
{
    return {true, (kept & is_left) != 0, (kept & is_negative) != 0, (kept & is_true_for_nan) != 0};
}

Expr* over_test_value(const Expr* clause, const AroundBound& bound)
{
    auto* copy = castNode(OpExpr, copyObjectImpl(clause));
    auto* side = static_cast<Node*>(bound.left ? linitial(copy->args) : lsecond(copy->args));
    const Innermost inner = find_innermost(side, copy->args);
    CaseTestExpr* value = makeNode(CaseTestExpr);
    value->typeId = FLOAT8OID;
    value->typeMod = -1;
    ListCell* cell;
    foreach (cell, inner.place) {
        if (lfirst(cell) == inner.expression) lfirst(cell) = value;
    }
    return reinterpret_cast<Expr*>(copy);
}

}  // namespace pgwarp
