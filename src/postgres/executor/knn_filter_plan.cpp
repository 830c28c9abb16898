#include "postgres/executor/knn_filter_plan.h"

extern "C" {
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

int find_bound_value(const OpExpr* comparison)
{
    if (list_length(comparison->args) != 2) return 0;
    const Oid function = comparison->opfuncid != InvalidOid ? comparison->opfuncid : get_opcode(comparison->opno);
    switch (function) {
        case F_FLOAT8LT:
        case F_FLOAT8LE:
        case F_FLOAT84LT:
        case F_FLOAT84LE:
            return 2;
        case F_FLOAT8GT:
        case F_FLOAT8GE:
        case F_FLOAT48GT:
        case F_FLOAT48GE:
            return 1;
        default:
            return 0;
    }
}

KnnFilterPlan read_knn_filter_plan(const CustomScan* scan)
{
    List* bounds = NIL;
    ListCell* cell;
    foreach (cell, scan->custom_exprs) {
        if (IsA(lfirst(cell), OpExpr)) bounds = lappend(bounds, lfirst(cell));
    }
    // A bound is NULL where the distance is.
    return {bounds, scan->custom_exprs != NIL, floatVal(linitial(scan->custom_private))};
}

Expr* bound_value(Node* bound)
{
    const auto* comparison = castNode(OpExpr, bound);
    return static_cast<Expr*>(list_nth(comparison->args, find_bound_value(comparison) - 1));
}

}  // namespace pgwarp
