#include "postgres/executor/filter_bounds.h"

#include <cmath>
#include <limits>

#include "postgres/am/around_bound.h"
#include "postgres/am/distance_bound.h"
#include "postgres/scan/search_limits.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

namespace
{

// A value that the distance is compared with.
struct PlainBound {
    ExprState* value;
    bool strict;
};

struct Around {
    ExprState* test;  // over the case test value
    AroundBound bound;
};

// Returns the largest distance that passes; NaN where the value is null.
double evaluate_bound(const PlainBound& bound, ExprContext* context)
{
    bool is_null = false;
    const Datum datum = ExecEvalExprSwitchContext(bound.value, context, &is_null);
    if (is_null) return std::numeric_limits<double>::quiet_NaN();
    const double value = bound_as_double(datum, exprType(reinterpret_cast<Node*>(bound.value->expr)));
    return bound.strict && std::isfinite(value) ? std::nextafter(value, lowest) : value;
}

bool passes(const Around& around, ExprContext* context, double distance)
{
    context->caseValue_datum = Float8GetDatum(around.bound.negative ? -distance : distance);
    context->caseValue_isNull = false;
    bool is_null = false;
    const Datum result = ExecEvalExprSwitchContext(around.test, context, &is_null);
    return !is_null && DatumGetBool(result);
}

}  // namespace

FilterBounds begin_filter_bounds(const KnnFilterPlan& plan, PlanState* node)
{
    FilterBounds bounds = {NIL, NIL};
    ListCell* clause;
    foreach (clause, plan.bounds) {
        auto* bound = static_cast<PlainBound*>(palloc0(sizeof(PlainBound)));
        bound->value = ExecInitExpr(bound_value(static_cast<Node*>(lfirst(clause)), &bound->strict), node);
        bounds.plain = lappend(bounds.plain, bound);
    }
    ListCell* kind;
    forboth(clause, plan.around, kind, plan.around_kinds)
    {
        auto* around = static_cast<Around*>(palloc0(sizeof(Around)));
        around->bound = read_around_bound(lfirst_int(kind));
        around->test = ExecInitExpr(over_test_value(static_cast<Expr*>(lfirst(clause)), around->bound), node);
        bounds.around = lappend(bounds.around, around);
    }
    return bounds;
}

double find_bound(const FilterBounds& bounds, ExprContext* context)
{
    double least = std::numeric_limits<double>::infinity();
    ListCell* cell;
    foreach (cell, bounds.plain) {
        const double bound = evaluate_bound(*static_cast<const PlainBound*>(lfirst(cell)), context);
        if (std::isnan(bound) || std::isnan(least)) {
            least = std::numeric_limits<double>::quiet_NaN();
        } else {
            least = Min(least, bound);
        }
    }
    return least;
}

Beyond find_beyond(const FilterBounds& bounds, ExprContext* context, double distance)
{
    Beyond found = Beyond::no;
    ListCell* cell;
    foreach (cell, bounds.around) {
        const auto& around = *static_cast<const Around*>(lfirst(cell));
        if (passes(around, context, distance)) continue;
        if (!around.bound.passes_nan) return Beyond::all;
        found = Beyond::distances;
    }
    return found;
}

}  // namespace pgwarp
