#include "postgres/executor/knn_filter_plan.h"

#include "postgres/am/distance_bound.h"

extern "C" {
#include "nodes/value.h"
}

namespace pgwarp
{

namespace
{

constexpr int nulls_lead = 1;
constexpr int nans_lead = 2;

}  // namespace

Integer* leading_private(const Leading& leading)
{
    return makeInteger((leading.nulls ? nulls_lead : 0) | (leading.nans ? nans_lead : 0));
}

KnnFilterPlan read_knn_filter_plan(const CustomScan* scan)
{
    List* kinds = static_cast<List*>(lthird(scan->custom_private));
    const int first_around = list_length(scan->custom_exprs) - list_length(kinds);
    List* bounds = NIL;
    for (int i = 0; i < first_around; ++i) {
        void* condition = list_nth(scan->custom_exprs, i);
        if (IsA(condition, OpExpr)) bounds = lappend(bounds, condition);
    }
    // A bound is NULL where the distance is.
    const int leading = intVal(lsecond(scan->custom_private));
    const bool has_bitmap = list_length(scan->custom_plans) > 1;
    return {bounds,
            list_copy_tail(scan->custom_exprs, first_around),
            kinds,
            scan->custom_exprs != NIL,
            floatVal(linitial(scan->custom_private)),
            has_bitmap ? static_cast<Plan*>(lsecond(scan->custom_plans)) : nullptr,
            has_bitmap ? floatVal(lfourth(scan->custom_private)) : 0,
            {(leading & nulls_lead) != 0, (leading & nans_lead) != 0}};
}

Expr* bound_value(Node* bound, bool* strict)
{
    UpperBound split = {};
    if (!split_bound(reinterpret_cast<Expr*>(bound), &split)) elog(ERROR, "a KnnFilter has a bound of another kind");
    *strict = split.strict;
    return reinterpret_cast<Expr*>(split.value);
}

}  // namespace pgwarp
