// Finds where a node is split, and splits it.
#include "postgres/planner/node_split.h"

#include "postgres/executor/knn_batch.h"
#include "postgres/expression_walk.h"
#include "postgres/planner/subplan_search.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
}

namespace pgwarp
{

namespace
{

// Returns the target list that a column refers to, and in *below the plan with that list; NIL for a column of a table.
List* referred_list(const Plan* plan, const Var* column, const Plan** below)
{
    *below = nullptr;
    if (column->varno == OUTER_VAR) *below = plan->lefttree;
    if (column->varno == INNER_VAR) *below = plan->righttree;
    if (column->varno == INDEX_VAR && IsA(plan, CustomScan)) {
        *below = plan;
        return reinterpret_cast<const CustomScan*>(plan)->custom_scan_tlist;
    }
    if (column->varno == INDEX_VAR && IsA(plan, IndexOnlyScan)) {
        *below = plan;
        return reinterpret_cast<const IndexOnlyScan*>(plan)->indextlist;
    }
    return *below != nullptr ? (*below)->targetlist : NIL;
}

// Returns the table's column that a node's column stands for; null when there is none: EXPLAIN cannot name such a
// column.
const Var* table_column(const Plan* plan, const Var* column)
{
    while (IS_SPECIAL_VARNO(column->varno)) {
        const Plan* below = nullptr;
        List* list = referred_list(plan, column, &below);
        if (column->varattno < 1 || column->varattno > list_length(list)) return nullptr;
        const Expr* expression = static_cast<TargetEntry*>(list_nth(list, column->varattno - 1))->expr;
        if (!IsA(expression, Var)) return nullptr;
        column = reinterpret_cast<const Var*>(expression);
        plan = below;
    }
    return column;
}

// Whether an expression contains a part that only its own node can evaluate.
bool is_bound(Node* node, void* context)
{
    if (node == nullptr) return false;
    switch (nodeTag(node)) {
        case T_Var: {
            const auto* column = castNode(Var, node);
            return column->varattno == InvalidAttrNumber ||
                   table_column(static_cast<const Plan*>(context), column) == nullptr;
        }
        case T_Aggref:
        case T_GroupingFunc:
        case T_WindowFunc:
        case T_CurrentOfExpr:
            return true;
        case T_FuncExpr:
            if (castNode(FuncExpr, node)->funcretset) return true;
            break;
        case T_OpExpr:
            if (castNode(OpExpr, node)->opretset) return true;
            break;
        default:
            break;
    }
    return walk_expression(node, is_bound, context);
}

bool is_join(const Plan* plan)
{
    return IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin);
}

// The conditions that leave a row out, in the order of evaluation. The join conditions of an inner join belong to them.
List** conditions_of(Plan* plan)
{
    if (is_join(plan) && plan->qual == NIL && reinterpret_cast<Join*>(plan)->jointype == JOIN_INNER) {
        return &reinterpret_cast<Join*>(plan)->joinqual;
    }
    return &plan->qual;
}

// Moves columns into a separate target list, and makes references to them.
struct Columns {
    List* targets;
};

Node* move_column(Node* node, void* context)
{
    auto* columns = static_cast<Columns*>(context);
    if (node == nullptr) return nullptr;
    if (!IsA(node, Var)) return mutate_expression(node, move_column, context);
    const auto* column = castNode(Var, node);
    ListCell* cell;
    const TargetEntry* target = nullptr;
    foreach (cell, columns->targets) {
        auto* entry = static_cast<TargetEntry*>(lfirst(cell));
        if (equal(entry->expr, column)) target = entry;
    }
    if (target == nullptr) {
        auto* copy = static_cast<Expr*>(copyObjectImpl(column));
        target = makeTargetEntry(copy, static_cast<AttrNumber>(list_length(columns->targets) + 1), nullptr, false);
        columns->targets = lappend(columns->targets, const_cast<TargetEntry*>(target));
    }
    return reinterpret_cast<Node*>(
        makeVar(INDEX_VAR, target->resno, column->vartype, column->vartypmod, column->varcollid, 0));
}

template <class Type>
Type* move_columns(Type* expression, Columns* columns)
{
    return reinterpret_cast<Type*>(move_column(reinterpret_cast<Node*>(expression), columns));
}

// Returns the target list with table columns in place of references, by which EXPLAIN names them.
List* name_columns(const Plan* plan, List* targets)
{
    auto* named = static_cast<List*>(copyObjectImpl(targets));
    ListCell* cell;
    foreach (cell, named) {
        auto* entry = static_cast<TargetEntry*>(lfirst(cell));
        const Var* column = table_column(plan, reinterpret_cast<const Var*>(entry->expr));
        entry->expr = static_cast<Expr*>(copyObjectImpl(column));
    }
    return named;
}

}  // namespace

bool is_batch_node(const Plan* plan)
{
    return IsA(plan, CustomScan) && reinterpret_cast<const CustomScan*>(plan)->methods == &knn_batch_scan_methods;
}

bool may_split(const Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_SeqScan:
        case T_SampleScan:
        case T_IndexScan:
        case T_BitmapHeapScan:
        case T_SubqueryScan:
        case T_FunctionScan:
        case T_ValuesScan:
        case T_CteScan:
        case T_NestLoop:
        case T_MergeJoin:
        case T_HashJoin:
            return !plan->parallel_aware;
        case T_Result:
            return plan->lefttree != nullptr;
        default:
            return is_batch_node(plan);
    }
}

bool find_split(const PlannedStmt* statement, Plan* plan, Split* split)
{
    KnnBatchPlan own = {};
    if (is_batch_node(plan)) own = read_knn_batch_plan(castNode(CustomScan, plan));
    const KnnBatchPlan* batch = own.query != nullptr ? &own : nullptr;
    List* conditions = *conditions_of(plan);
    int first = 0;
    while (first < list_length(conditions) &&
           !plan_expression_batch(statement, static_cast<Node*>(list_nth(conditions, first)), batch, &split->batch)) {
        ++first;
    }
    if (first == list_length(conditions) &&
        !plan_expression_batch(statement, reinterpret_cast<Node*>(plan->targetlist), batch, &split->batch)) {
        return false;
    }
    split->kept = list_truncate(list_copy(conditions), first);
    split->moved = list_copy_tail(conditions, first);
    return true;
}

bool may_apply(const ReadingPlace& place, const Split& split, Plan* plan)
{
    if (is_bound(reinterpret_cast<Node*>(split.moved), plan)) return false;
    if (is_bound(reinterpret_cast<Node*>(plan->targetlist), plan)) return false;
    List** conditions = conditions_of(plan);
    List* all = *conditions;
    List* targets = plan->targetlist;
    *conditions = split.kept;
    plan->targetlist = NIL;
    const bool may_read = may_read_ahead(place, plan);
    *conditions = all;
    plan->targetlist = targets;
    return may_read;
}

Plan* split_node(Plan* node, const Split& split, int number)
{
    Columns columns = {NIL};
    CustomScan* scan = makeNode(CustomScan);
    Plan& plan = scan->scan.plan;
    plan.targetlist = move_columns(node->targetlist, &columns);
    plan.qual = move_columns(split.moved, &columns);
    KnnBatchPlan moved = split.batch;
    moved.query = move_columns(split.batch.query, &columns);
    moved.within = move_columns(split.batch.within, &columns);
    moved.values = move_columns(split.batch.values, &columns);
    plan.startup_cost = node->startup_cost;
    plan.total_cost = node->total_cost;
    plan.plan_rows = node->plan_rows;
    plan.plan_width = node->plan_width;
#if PG_VERSION_NUM >= 180000
    plan.disabled_nodes = node->disabled_nodes;
#endif
    plan.plan_node_id = number;
    plan.extParam = bms_copy(node->extParam);
    plan.allParam = bms_copy(node->allParam);
    // The init plans move with the sub-plans that read their results.
    plan.initPlan = node->initPlan;
    node->initPlan = NIL;
    scan->custom_plans = list_make1(node);
    scan->custom_exprs = knn_batch_expressions(moved);
    scan->custom_private = knn_batch_private(moved);
    scan->custom_scan_tlist = name_columns(node, columns.targets);
    scan->methods = &knn_batch_scan_methods;
    node->targetlist = columns.targets;
    List** conditions = conditions_of(node);
    *conditions = split.kept;
    // inner_unique may have followed from a condition that moved.
    if (split.moved != NIL && conditions != &node->qual) reinterpret_cast<Join*>(node)->inner_unique = false;
    return &plan;
}

}  // namespace pgwarp
