#include "postgres/executor/knn_batch_plan.h"

extern "C" {
#include "nodes/makefuncs.h"
}

namespace pgwarp
{

List* knn_batch_expressions(const KnnBatchPlan& plan)
{
    return list_make5(plan.query, plan.limit, plan.offset, plan.within, plan.values);
}

List* knn_batch_private(const KnnBatchPlan& plan)
{
    return list_make4(plan.indexes, makeInteger(plan.filtered ? 1 : 0), makeInteger(plan.alone ? 1 : 0), plan.keys);
}

KnnBatchPlan read_knn_batch_plan(const CustomScan* scan)
{
    return {static_cast<Expr*>(linitial(scan->custom_exprs)),   static_cast<Expr*>(lsecond(scan->custom_exprs)),
            static_cast<Expr*>(lthird(scan->custom_exprs)),     static_cast<Expr*>(lfourth(scan->custom_exprs)),
            static_cast<List*>(linitial(scan->custom_private)), intVal(lsecond(scan->custom_private)) != 0,
            intVal(lthird(scan->custom_private)) != 0,          static_cast<List*>(lfourth(scan->custom_private)),
            static_cast<List*>(list_nth(scan->custom_exprs, 4))};
}

}  // namespace pgwarp
