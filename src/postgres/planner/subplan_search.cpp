#include "postgres/planner/subplan_search.h"

#include "postgres/am/methods.h"
#include "postgres/executor/evaluate_ahead.h"
#include "postgres/executor/knn_batch_keys.h"
#include "postgres/expression_walk.h"
#include "postgres/planner/knn_batch_path.h"
#include "postgres/planner/read_ahead.h"

extern "C" {
#include "optimizer/optimizer.h"
}

namespace pgwarp
{

namespace
{

// A sub-plan with scans of pgwarp indexes under a LIMIT; the query or conditions contain parameters.
struct SearchingSubplan {
    Expr* query;
    Node* limit;
    Node* offset;
    List* indexes;
    List* conditions;  // of the scans, on columns at the same places
    bool filtered;     // below the LIMIT
    bool failed;       // the scans are for different queries
};

bool is_ours(Oid index_oid)
{
    Relation index = index_open(index_oid, AccessShareLock);
    const bool ours = find_access_method(index->rd_indam->amoptions) != nullptr;
    index_close(index, NoLock);
    return ours;
}

// Scan: IndexScan or IndexOnlyScan.
template <class Scan>
void find_scan(const Scan* scan, SearchingSubplan* found)
{
    if (list_length(scan->indexorderby) != 1 || found->limit == nullptr) return;
    Node* order = static_cast<Node*>(linitial(scan->indexorderby));
    if (!IsA(order, OpExpr) || list_length(castNode(OpExpr, order)->args) != 2 || !is_ours(scan->indexid)) return;
    auto* query = static_cast<Expr*>(lsecond(castNode(OpExpr, order)->args));
    if (found->query != nullptr && !equal(found->query, query)) found->failed = true;
    if (found->indexes != NIL && !equal(found->conditions, scan->indexqual)) found->failed = true;
    found->query = query;
    found->conditions = scan->indexqual;
    found->indexes = lappend_oid(found->indexes, scan->indexid);
}

// Search for scans below nodes that pass rows on.
void find_scans(Plan* plan, SearchingSubplan* found)
{
    if (plan == nullptr) return;
    if (plan->qual != NIL && found->limit != nullptr) found->filtered = true;
    ListCell* cell;
    switch (nodeTag(plan)) {
        case T_Limit:
            found->filtered = false;
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
        case T_BitmapIndexScan:
        case T_BitmapAnd:
        case T_BitmapOr:
            found->failed = true;  // a KnnFilter's scan searches among rows that no other search knows
            return;
        case T_IncrementalSort:
            if (found->limit != nullptr) found->filtered = true;  // it reads on to the next value of the sorted columns
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

// Replaces a sub-plan's parameters by the parent's expressions for them.
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

// The number of the index's column on the left of a condition; -1 where there is none.
int column_of_condition(const Expr* condition)
{
    const Node* left = nullptr;
    if (IsA(condition, OpExpr)) left = static_cast<Node*>(linitial(reinterpret_cast<const OpExpr*>(condition)->args));
    if (IsA(condition, ScalarArrayOpExpr)) {
        left = static_cast<Node*>(linitial(reinterpret_cast<const ScalarArrayOpExpr*>(condition)->args));
    }
    if (IsA(condition, NullTest)) left = reinterpret_cast<Node*>(reinterpret_cast<const NullTest*>(condition)->arg);
    if (left != nullptr && IsA(left, RelabelType)) {
        left = reinterpret_cast<Node*>(reinterpret_cast<const RelabelType*>(left)->arg);
    }
    if (left == nullptr || !IsA(left, Var) || reinterpret_cast<const Var*>(left)->varno != INDEX_VAR) return -1;
    return reinterpret_cast<const Var*>(left)->varattno - 1;
}

// Describes the conditions of the scan by the parent's row; false where some cannot be evaluated ahead.
bool add_conditions(const SearchingSubplan& found, Arguments* arguments, KnnBatchPlan* plan)
{
    ListCell* cell;
    foreach (cell, found.conditions) {
        const auto* condition = static_cast<const Expr*>(lfirst(cell));
        const int column = column_of_condition(condition);
        Node* value = value_of_condition(condition);
        if (value != nullptr) value = replace_parameter(value, arguments);
        if (column < 0) return false;
        if (arguments->failed || !may_evaluate_ahead(value)) {
            if (!is_value_of_scan(value)) return false;
            arguments->failed = false;
            value = nullptr;
        }
        if (!add_batch_key(condition, column, reinterpret_cast<Expr*>(value), plan)) return false;
    }
    return true;
}

// Describes the batch of a KnnBatch below the evaluation of this sub-plan; false when batching saves nothing.
bool plan_batch(const PlannedStmt* statement, const SubPlan* subplan, KnnBatchPlan* plan)
{
    if (subplan->parParam == NIL || subplan->useHashTable) return false;
    SearchingSubplan found = {};
    find_scans(static_cast<Plan*>(list_nth(statement->subplans, subplan->plan_id - 1)), &found);
    if (found.query == nullptr || found.failed) return false;
    Arguments arguments = {subplan, false};
    Node* query = replace_parameter(reinterpret_cast<Node*>(found.query), &arguments);
    if (arguments.failed || !may_evaluate_ahead(query)) return false;
    KnnBatchPlan keyed = {};
    if (!add_conditions(found, &arguments, &keyed)) return false;
    if (!contain_var_clause(query) && !contain_var_clause(reinterpret_cast<Node*>(keyed.values))) return false;
    *plan = {reinterpret_cast<Expr*>(query),
             row_count_ahead(found.limit),
             row_count_ahead(found.offset),
             bound_ahead(nullptr),
             found.indexes,
             found.filtered,
             false,
             keyed.keys,
             keyed.values};
    return true;
}

struct ExpressionSearch {
    const PlannedStmt* statement;
    const KnnBatchPlan* own;
    KnnBatchPlan batch;
    bool found;
    bool answered;
};

bool search_expression(Node* node, void* context)
{
    auto* search = static_cast<ExpressionSearch*>(context);
    if (node == nullptr) return false;
    KnnBatchPlan batch = {};
    if (IsA(node, SubPlan) && plan_batch(search->statement, castNode(SubPlan, node), &batch)) {
        const KnnBatchPlan* own = search->own;
        if (own != nullptr && equal(batch.query, own->query) && equal(batch.keys, own->keys) &&
            equal(batch.values, own->values) && list_difference_oid(batch.indexes, own->indexes) == NIL) {
            search->answered = true;
        } else if (!search->found) {
            search->batch = batch;
            search->found = true;
        }
    }
    return walk_expression(node, search_expression, context);
}

}  // namespace

bool any_subplan_searches(const PlannedStmt* statement)
{
    ListCell* cell;
    foreach (cell, statement->subplans) {
        SearchingSubplan found = {};
        find_scans(static_cast<Plan*>(lfirst(cell)), &found);
        if (found.query == nullptr || found.failed) continue;
        if (has_executor_parameter(reinterpret_cast<Node*>(found.query), nullptr)) return true;
        if (has_executor_parameter(reinterpret_cast<Node*>(found.conditions), nullptr)) return true;
    }
    return false;
}

bool plan_expression_batch(const PlannedStmt* statement, Node* expression, const KnnBatchPlan* own, KnnBatchPlan* batch)
{
    ExpressionSearch search = {statement, own, {}, false, false};
    search_expression(expression, &search);
    if (search.found) *batch = search.batch;
    return search.found && !search.answered;
}

}  // namespace pgwarp
