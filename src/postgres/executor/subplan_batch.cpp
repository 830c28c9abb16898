#include "postgres/executor/subplan_batch.h"

#include "postgres/access/methods.h"
#include "postgres/executor/knn_batch.h"
#include "postgres/settings.h"

extern "C" {
#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
}

namespace pgwarp
{

namespace
{

constexpr int first_node_number = 1 << 20;  // of the nodes that are added; the planner's are smaller

// A sub-plan with index scans of ours under a LIMIT, as the plan has them: the query holds parameters.
struct SearchingSubplan {
    Expr* query;
    Node* limit;
    Node* offset;
    List* indexes;
    bool filtered;
    bool failed;  // not all scans are for the same query
};

template <class Walker>
bool walk_expression(Node* node, Walker walker, void* context)
{
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, walker, context);
#else
    return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(walker)), context);
#endif
}

template <class Mutator>
Node* mutate_expression(Node* node, Mutator mutator, void* context)
{
#if PG_VERSION_NUM >= 160000
    return expression_tree_mutator(node, mutator, context);
#else
    return expression_tree_mutator(node, reinterpret_cast<Node* (*)()>(reinterpret_cast<void*>(mutator)), context);
#endif
}

bool is_ours(Oid index_oid)
{
    Relation index = index_open(index_oid, AccessShareLock);
    const bool ours = find_access_method(index->rd_indam->amoptions) != nullptr;
    index_close(index, NoLock);
    return ours;
}

// IndexScan or IndexOnlyScan.
template <class Scan>
void find_scan(const Scan* scan, SearchingSubplan* found)
{
    if (list_length(scan->indexorderby) != 1 || found->limit == nullptr) return;
    Node* order = static_cast<Node*>(linitial(scan->indexorderby));
    if (!IsA(order, OpExpr) || list_length(castNode(OpExpr, order)->args) != 2 || !is_ours(scan->indexid)) return;
    auto* query = static_cast<Expr*>(lsecond(castNode(OpExpr, order)->args));
    if (found->query != nullptr && !equal(found->query, query)) found->failed = true;
    found->query = query;
    found->indexes = lappend_oid(found->indexes, scan->indexid);
    if (scan->scan.plan.qual != NIL) found->filtered = true;
}

// Look for the scans below nodes that hand rows on.
void find_scans(Plan* plan, SearchingSubplan* found)
{
    if (plan == nullptr) return;
    ListCell* cell;
    switch (nodeTag(plan)) {
        case T_Limit:
            found->limit = castNode(Limit, plan)->limitCount;
            found->offset = castNode(Limit, plan)->limitOffset;
            break;
        case T_SubqueryScan:
            find_scans(castNode(SubqueryScan, plan)->subplan, found);
            break;
        case T_MergeAppend:
            foreach (cell, castNode(MergeAppend, plan)->mergeplans) {
                find_scans(static_cast<Plan*>(lfirst(cell)), found);
            }
            break;
        case T_Append:
            foreach (cell, castNode(Append, plan)->appendplans) find_scans(static_cast<Plan*>(lfirst(cell)), found);
            break;
        case T_CustomScan:
            foreach (cell, castNode(CustomScan, plan)->custom_plans)
                find_scans(static_cast<Plan*>(lfirst(cell)), found);
            break;
        case T_IndexScan:
            find_scan(castNode(IndexScan, plan), found);
            break;
        case T_IndexOnlyScan:
            find_scan(castNode(IndexOnlyScan, plan), found);
            break;
        case T_Agg:
        case T_Result:
        case T_Sort:
            break;
        default:
            return;
    }
    find_scans(plan->lefttree, found);
}

bool has_parameter(Node* node, void*)
{
    if (node == nullptr) return false;
    if (IsA(node, Param) && castNode(Param, node)->paramkind == PARAM_EXEC) return true;
    return walk_expression(node, has_parameter, nullptr);
}

// Replaces a sub-plan's parameters by what its parent sets them to.
struct Arguments {
    const SubPlan* subplan;
    bool failed;
};

Node* replace_parameter(Node* node, void* context)
{
    auto* arguments = static_cast<Arguments*>(context);
    if (node == nullptr) return nullptr;
    if (!IsA(node, Param) || castNode(Param, node)->paramkind != PARAM_EXEC) {
        return mutate_expression(node, replace_parameter, context);
    }
    ListCell* number;
    ListCell* value;
    forboth(number, arguments->subplan->parParam, value, arguments->subplan->args)
    {
        if (lfirst_int(number) == castNode(Param, node)->paramid) {
            return static_cast<Node*>(copyObjectImpl(lfirst(value)));
        }
    }
    arguments->failed = true;
    return node;
}

bool may_run_ahead(Node* expression)
{
    return !contain_volatile_functions(expression) && !contain_subplans(expression);
}

// What a KnnBatch above the node that evaluates this sub-plan is to read ahead; false when there is nothing to gain.
bool plan_batch(const PlannedStmt* statement, const SubPlan* subplan, KnnBatchPlan* plan)
{
    if (subplan->parParam == NIL || subplan->useHashTable) return false;
    SearchingSubplan found = {};
    find_scans(static_cast<Plan*>(list_nth(statement->subplans, subplan->plan_id - 1)), &found);
    if (found.query == nullptr || found.failed) return false;
    if (has_parameter(found.limit, nullptr) || has_parameter(found.offset, nullptr)) return false;
    Arguments arguments = {subplan, false};
    Node* query = replace_parameter(reinterpret_cast<Node*>(found.query), &arguments);
    if (arguments.failed || !contain_var_clause(query)) return false;
    if (!may_run_ahead(query) || !may_run_ahead(found.limit) || !may_run_ahead(found.offset)) return false;
    Node* none = reinterpret_cast<Node*>(makeNullConst(INT8OID, -1, InvalidOid));
    *plan = {reinterpret_cast<Expr*>(query), static_cast<Expr*>(copyObjectImpl(found.limit)),
             static_cast<Expr*>(copyObjectImpl(found.offset != nullptr ? found.offset : none)), found.indexes,
             found.filtered};
    return true;
}

// The target list that a column refers to, and the plan whose list it is; NIL for a column of a table.
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

// The table's column that a node's column is, null when it is none: EXPLAIN can't name others.
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

// The first sub-plan of a target list that can be batched, and what is in the list that only its own node can evaluate.
struct TargetSearch {
    const PlannedStmt* statement;
    const Plan* plan;
    KnnBatchPlan batch;
    bool found;
    bool bound;
};

bool search_targets(Node* node, void* context)
{
    auto* search = static_cast<TargetSearch*>(context);
    if (node == nullptr) return false;
    switch (nodeTag(node)) {
        case T_SubPlan:
            if (!search->found) search->found = plan_batch(search->statement, castNode(SubPlan, node), &search->batch);
            break;
        case T_Var:
            if (castNode(Var, node)->varattno == InvalidAttrNumber ||
                table_column(search->plan, castNode(Var, node)) == nullptr) {
                search->bound = true;
            }
            break;
        case T_Aggref:
        case T_GroupingFunc:
        case T_WindowFunc:
        case T_CurrentOfExpr:
            search->bound = true;
            break;
        case T_FuncExpr:
            if (castNode(FuncExpr, node)->funcretset) search->bound = true;
            break;
        case T_OpExpr:
            if (castNode(OpExpr, node)->opretset) search->bound = true;
            break;
        default:
            break;
    }
    return walk_expression(node, search_targets, context);
}

// Whether a node's target list may as well be evaluated above it.
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
            return false;
    }
}

// Moves columns into a target list of their own, and refers to them there.
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

// What a target list's columns are called.
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

// The node with its columns only, below a KnnBatch with its target list.
Plan* split_node(Plan* node, const KnnBatchPlan& batch, int number)
{
    Columns columns = {NIL};
    CustomScan* scan = makeNode(CustomScan);
    Plan& plan = scan->scan.plan;
    plan.targetlist = move_columns(node->targetlist, &columns);
    KnnBatchPlan moved = batch;
    moved.query = move_columns(batch.query, &columns);
    plan.startup_cost = node->startup_cost;
    plan.total_cost = node->total_cost;
    plan.plan_rows = node->plan_rows;
    plan.plan_width = node->plan_width;
    plan.plan_node_id = number;
    plan.extParam = bms_copy(node->extParam);
    plan.allParam = bms_copy(node->allParam);
    scan->custom_plans = list_make1(node);
    scan->custom_exprs = knn_batch_expressions(moved);
    scan->custom_private = knn_batch_private(moved);
    scan->custom_scan_tlist = name_columns(node, columns.targets);
    scan->methods = &knn_batch_scan_methods;
    node->targetlist = columns.targets;
    return &plan;
}

struct Rewriting {
    PlannedStmt* statement;
    int count;
};

void rewrite_plan(Rewriting* rewriting, Plan** link);

void rewrite_plans(Rewriting* rewriting, List* plans)
{
    ListCell* cell;
    foreach (cell, plans) rewrite_plan(rewriting, reinterpret_cast<Plan**>(&lfirst(cell)));
}

// Rewrite what is below a node. What parallel workers execute, and what must go back to a marked row, stays.
void rewrite_children(Rewriting* rewriting, Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_Gather:
        case T_GatherMerge:
            return;
        case T_SubqueryScan:
            rewrite_plan(rewriting, &castNode(SubqueryScan, plan)->subplan);
            break;
        case T_Append:
            rewrite_plans(rewriting, castNode(Append, plan)->appendplans);
            break;
        case T_MergeAppend:
            rewrite_plans(rewriting, castNode(MergeAppend, plan)->mergeplans);
            break;
        default:
            break;
    }
    rewrite_plan(rewriting, &plan->lefttree);
    if (!IsA(plan, MergeJoin)) rewrite_plan(rewriting, &plan->righttree);
}

void rewrite_plan(Rewriting* rewriting, Plan** link)
{
    Plan* plan = *link;
    if (plan == nullptr) return;
    check_stack_depth();
    rewrite_children(rewriting, plan);
    if (!may_split(plan)) return;
    TargetSearch search = {rewriting->statement, plan, {}, false, false};
    search_targets(reinterpret_cast<Node*>(plan->targetlist), &search);
    if (!search.found || search.bound) return;
    *link = split_node(plan, search.batch, first_node_number + rewriting->count++);
}

// Whether any sub-plan searches: copying the plan is worth it.
bool any_searches(const PlannedStmt* statement)
{
    ListCell* cell;
    foreach (cell, statement->subplans) {
        SearchingSubplan found = {};
        find_scans(static_cast<Plan*>(lfirst(cell)), &found);
        if (found.query != nullptr && !found.failed && has_parameter(reinterpret_cast<Node*>(found.query), nullptr)) {
            return true;
        }
    }
    return false;
}

// Whether the query is a cursor's own: the node that WHERE CURRENT OF looks for must be as the planner made it.
bool is_of_cursor()
{
    return ActivePortal != nullptr && ActivePortal->name[0] != '\0' && ActivePortal->strategy == PORTAL_ONE_SELECT &&
           ActivePortal->queryDesc == nullptr;
}

// Rows that are locked or changed, and cursors, want the plan as the planner made it.
bool may_rewrite(const QueryDesc* query, int flags)
{
    const PlannedStmt* statement = query->plannedstmt;
    if (statement->subplans == NIL || statement->rowMarks != NIL || statement->hasModifyingCTE) return false;
    if (statement->commandType != CMD_SELECT && statement->commandType != CMD_INSERT) return false;
    if ((flags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) != 0 || IsParallelWorker()) return false;
    return !is_of_cursor();
}

}  // namespace

void batch_subplans(QueryDesc* query, int flags)
{
    if (!setting_knn_batch || !may_rewrite(query, flags) || !any_searches(query->plannedstmt)) return;
    auto* copy = static_cast<PlannedStmt*>(copyObjectImpl(query->plannedstmt));
    Rewriting rewriting = {copy, 0};
    rewrite_plan(&rewriting, &copy->planTree);
    rewrite_plans(&rewriting, copy->subplans);
    if (rewriting.count > 0) query->plannedstmt = copy;
}

}  // namespace pgwarp
