#include "postgres/planner/read_ahead.h"

#include "postgres/executor/evaluate_ahead.h"
#include "postgres/executor/knn_batch.h"
#include "postgres/expression_walk.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

struct Reading {
    ReadingPlace place;
    bool at_start;  // the node is first executed for the first row, and never again
};

bool plan_tells(const Reading& reading, const Plan* plan);

bool is_volatile(Oid function, void*)
{
    return func_volatile(function) == PROVOLATILE_VOLATILE;
}

// Whether a node of a finished plan's expression may raise an error. A parameter set by a sub-select may, when it is
// first read; a parameter set by a join is a column's value.
bool may_fail(const ReadingPlace& place, Node* node)
{
    switch (nodeTag(node)) {
        case T_TargetEntry:
            return false;
        case T_Var:
            return castNode(Var, node)->varattno == InvalidAttrNumber;
        case T_Param:
            return castNode(Param, node)->paramkind == PARAM_EXEC &&
                   bms_is_member(castNode(Param, node)->paramid, place.late_parameters);
        default:
            return !is_harmless(node);
    }
}

// Whether an expression, or a part of it, shows when or for which rows it is evaluated.
bool tells(Node* node, void* context)
{
    const auto* reading = static_cast<const Reading*>(context);
    if (node == nullptr) return false;
    if (reading->place.stops_early && may_fail(reading->place, node)) return true;
    if (IsA(node, NextValueExpr) || check_functions_in_node(node, is_volatile, nullptr)) return true;
    if (IsA(node, SubPlan)) {
        const int number = castNode(SubPlan, node)->plan_id;
        const auto* plan = static_cast<const Plan*>(list_nth(reading->place.statement->subplans, number - 1));
        if (plan_tells({reading->place, false}, plan)) return true;
    }
    return walk_expression(node, tells, context);
}

template <class Expression>
bool any_tells(const Reading& reading, Expression* expression)
{
    return tells(reinterpret_cast<Node*>(expression), const_cast<Reading*>(&reading));
}

// The same for a scan's own conditions and values. A sort order without parameters is passed to the index once, at the
// start.
bool scan_tells(const Reading& reading, const Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_IndexScan: {
            const auto* scan = reinterpret_cast<const IndexScan*>(plan);
            if (any_tells(reading, scan->indexqualorig)) return true;
            return has_executor_parameter(reinterpret_cast<Node*>(scan->indexorderbyorig), nullptr) &&
                   any_tells(reading, scan->indexorderbyorig);
        }
        case T_IndexOnlyScan: {
            const auto* scan = reinterpret_cast<const IndexOnlyScan*>(plan);
            if (any_tells(reading, scan->indexqual)) return true;
            return has_executor_parameter(reinterpret_cast<Node*>(scan->indexorderby), nullptr) &&
                   any_tells(reading, scan->indexorderby);
        }
        case T_BitmapIndexScan:
            return any_tells(reading, reinterpret_cast<const BitmapIndexScan*>(plan)->indexqualorig);
        case T_BitmapHeapScan:
            return any_tells(reading, reinterpret_cast<const BitmapHeapScan*>(plan)->bitmapqualorig);
        case T_TidScan:
            return any_tells(reading, reinterpret_cast<const TidScan*>(plan)->tidquals);
        case T_TidRangeScan:
            return any_tells(reading, reinterpret_cast<const TidRangeScan*>(plan)->tidrangequals);
        case T_ValuesScan:
            return any_tells(reading, reinterpret_cast<const ValuesScan*>(plan)->values_lists);
        case T_FunctionScan:  // computes all rows before it returns the first
            return !reading.at_start && any_tells(reading, reinterpret_cast<const FunctionScan*>(plan)->functions);
        case T_TableFuncScan:
            return !reading.at_start && any_tells(reading, reinterpret_cast<const TableFuncScan*>(plan)->tablefunc);
        default:
            return false;
    }
}

// The same for the expressions of other nodes.
bool expressions_tell(const Reading& reading, const Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_Result:
            return any_tells(reading, reinterpret_cast<const ::Result*>(plan)->resconstantqual);
        case T_NestLoop:
            return any_tells(reading, reinterpret_cast<const Join*>(plan)->joinqual);
        case T_MergeJoin:
            return any_tells(reading, reinterpret_cast<const Join*>(plan)->joinqual) ||
                   any_tells(reading, reinterpret_cast<const MergeJoin*>(plan)->mergeclauses);
        case T_HashJoin:
            return any_tells(reading, reinterpret_cast<const Join*>(plan)->joinqual) ||
                   any_tells(reading, reinterpret_cast<const HashJoin*>(plan)->hashclauses);
        case T_Memoize:
            return any_tells(reading, reinterpret_cast<const Memoize*>(plan)->param_exprs);
        case T_CustomScan:
            return any_tells(reading, reinterpret_cast<const CustomScan*>(plan)->custom_exprs);
        case T_ForeignScan:
            return any_tells(reading, reinterpret_cast<const ForeignScan*>(plan)->fdw_exprs);
        case T_Limit: {  // counts, frame offsets and sample sizes are evaluated at the start
            const auto* limit = reinterpret_cast<const Limit*>(plan);
            return !reading.at_start &&
                   (any_tells(reading, limit->limitCount) || any_tells(reading, limit->limitOffset));
        }
        case T_WindowAgg: {
            const auto* window = reinterpret_cast<const WindowAgg*>(plan);
            return !reading.at_start &&
                   (any_tells(reading, window->startOffset) || any_tells(reading, window->endOffset));
        }
        case T_SampleScan:
            return !reading.at_start && any_tells(reading, reinterpret_cast<const SampleScan*>(plan)->tablesample);
        default:
            return false;
    }
}

// Whether the node does nothing but evaluate its expressions. Locked or changed rows are visible effects; foreign code
// in a scan may raise errors.
bool only_evaluates(const Reading& reading, const Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_CustomScan:
            return !reading.place.stops_early ||
                   reinterpret_cast<const CustomScan*>(plan)->methods == &knn_batch_scan_methods;
        case T_ForeignScan:
            return !reading.place.stops_early;
        case T_LockRows:
        case T_ModifyTable:
            return false;
        default:
            return true;
    }
}

bool any_plan_tells(const Reading& reading, const List* plans)
{
    ListCell* cell;
    foreach (cell, plans) {
        if (plan_tells(reading, static_cast<const Plan*>(lfirst(cell)))) return true;
    }
    return false;
}

// The same for children that are not the left or right one. Only the first member of an Append is executed at the
// start.
bool members_tell(const Reading& reading, const Plan* plan)
{
    switch (nodeTag(plan)) {
        case T_SubqueryScan:
            return plan_tells(reading, reinterpret_cast<const SubqueryScan*>(plan)->subplan);
        case T_CteScan: {
            const int number = reinterpret_cast<const CteScan*>(plan)->ctePlanId;
            return plan_tells(reading, static_cast<Plan*>(list_nth(reading.place.statement->subplans, number - 1)));
        }
        case T_Append:
            return any_plan_tells({reading.place, false}, reinterpret_cast<const Append*>(plan)->appendplans);
        case T_MergeAppend:
            return any_plan_tells(reading, reinterpret_cast<const MergeAppend*>(plan)->mergeplans);
        case T_BitmapAnd:
            return any_plan_tells(reading, reinterpret_cast<const BitmapAnd*>(plan)->bitmapplans);
        case T_BitmapOr:
            return any_plan_tells(reading, reinterpret_cast<const BitmapOr*>(plan)->bitmapplans);
        case T_CustomScan:
            return any_plan_tells(reading, reinterpret_cast<const CustomScan*>(plan)->custom_plans);
        default:
            return false;
    }
}

// The same for a node and all nodes below it.
bool plan_tells(const Reading& reading, const Plan* plan)
{
    if (plan == nullptr) return false;
    check_stack_depth();
    if (!only_evaluates(reading, plan) || any_tells(reading, plan->targetlist) || any_tells(reading, plan->qual)) {
        return true;
    }
    if (scan_tells(reading, plan) || expressions_tell(reading, plan) || members_tell(reading, plan)) return true;
    if (reading.at_start && reads_all_first(plan)) return false;
    Reading left = reading;
    Reading right = reading;
    if (IsA(plan, RecursiveUnion)) left.at_start = right.at_start = false;
    // The inner side of a nested loop is executed again for each row that sets its parameters.
    if (IsA(plan, NestLoop) && !bms_is_empty(plan->righttree->extParam)) right.at_start = false;
    return plan_tells(left, plan->lefttree) || plan_tells(right, plan->righttree);
}

}  // namespace

bool may_read_ahead(const ReadingPlace& place, const Plan* plan)
{
    return !plan_tells({place, true}, plan);
}

bool reads_all_first(const Plan* plan)
{
    if (IsA(plan, Sort) || IsA(plan, Hash)) return true;
    if (!IsA(plan, Agg)) return false;
    const AggStrategy strategy = reinterpret_cast<const Agg*>(plan)->aggstrategy;
    return strategy == AGG_PLAIN || strategy == AGG_HASHED;
}

bool has_executor_parameter(Node* node, void* context)
{
    if (node == nullptr) return false;
    if (IsA(node, Param) && castNode(Param, node)->paramkind == PARAM_EXEC) return true;
    return walk_expression(node, has_executor_parameter, context);
}

}  // namespace pgwarp
