// Walks over a finished plan, and adds and removes its KnnBatch nodes.
#include "postgres/planner/subplan_batch.h"

#include "postgres/planner/knn_batch_path.h"
#include "postgres/planner/node_split.h"
#include "postgres/planner/subplan_search.h"
#include "postgres/planner/unread_distance.h"
#include "postgres/settings.h"

extern "C" {
#include "miscadmin.h"
#include "optimizer/planner.h"
}

namespace pgwarp
{

namespace
{

planner_hook_type previous_planner = nullptr;

// The position of a node in the statement.
struct Place {
    bool stops_early;  // PostgreSQL may not read all of its rows
    bool splits;       // the node may be split
};

struct Rewriting {
    PlannedStmt* statement;
    int next_node_number;
    Bitmapset* late_parameters;  // set by sub-selects that are evaluated once, when they are first read
    Bitmapset* scanned;          // sub-plans that are common table expressions
    Bitmapset* stopped;          // those of `scanned` that may not be read to their end
};

ReadingPlace reading_place(const Rewriting* rewriting, Place place)
{
    return {rewriting->statement, rewriting->late_parameters, place.stops_early};
}

int largest_node_number(const Plan* plan);

int largest_number_of(const List* plans)
{
    int largest = -1;
    ListCell* cell;
    foreach (cell, plans) largest = Max(largest, largest_node_number(static_cast<const Plan*>(lfirst(cell))));
    return largest;
}

// Returns the largest number of a node in a plan.
int largest_node_number(const Plan* plan)
{
    if (plan == nullptr) return -1;
    check_stack_depth();
    int largest = Max(largest_node_number(plan->lefttree), largest_node_number(plan->righttree));
    largest = Max(largest, plan->plan_node_id);
    switch (nodeTag(plan)) {
        case T_SubqueryScan:
            return Max(largest, largest_node_number(reinterpret_cast<const SubqueryScan*>(plan)->subplan));
        case T_Append:
            return Max(largest, largest_number_of(reinterpret_cast<const Append*>(plan)->appendplans));
        case T_MergeAppend:
            return Max(largest, largest_number_of(reinterpret_cast<const MergeAppend*>(plan)->mergeplans));
        case T_BitmapAnd:
            return Max(largest, largest_number_of(reinterpret_cast<const BitmapAnd*>(plan)->bitmapplans));
        case T_BitmapOr:
            return Max(largest, largest_number_of(reinterpret_cast<const BitmapOr*>(plan)->bitmapplans));
        case T_CustomScan:
            return Max(largest, largest_number_of(reinterpret_cast<const CustomScan*>(plan)->custom_plans));
        default:
            return largest;
    }
}

// Whether a KnnBatch returns the columns of its child unchanged.
bool hands_columns_on(const CustomScan* batch, const Plan* child)
{
    if (batch->scan.plan.qual != NIL || list_length(batch->scan.plan.targetlist) > list_length(child->targetlist)) {
        return false;
    }
    ListCell* cell;
    foreach (cell, batch->scan.plan.targetlist) {
        const auto* target = static_cast<const TargetEntry*>(lfirst(cell));
        const auto* column = reinterpret_cast<const Var*>(target->expr);
        if (!IsA(column, Var) || column->varno != INDEX_VAR || column->varattno != target->resno) return false;
    }
    return true;
}

// Returns the plan without the KnnBatch of a join; if the KnnBatch returns other columns than its child, it stays but
// reads no row ahead.
Plan* without_batch(CustomScan* batch)
{
    auto* child = static_cast<Plan*>(linitial(batch->custom_plans));
    if (hands_columns_on(batch, child)) {
        child->initPlan = list_concat(child->initPlan, batch->scan.plan.initPlan);
        return child;
    }
    KnnBatchPlan plan = read_knn_batch_plan(batch);
    plan.alone = true;
    batch->custom_private = knn_batch_private(plan);
    return &batch->scan.plan;
}

// The position of a node's left child, or of its members.
Place place_below(const Plan* plan, Place place)
{
    if (reads_all_first(plan)) return {false, place.splits};
    switch (nodeTag(plan)) {
        case T_Limit: {
            Node* count = reinterpret_cast<const Limit*>(plan)->limitCount;
            const bool unlimited = count == nullptr || (IsA(count, Const) && castNode(Const, count)->constisnull);
            return {place.stops_early || !unlimited, place.splits};
        }
        case T_WindowAgg:  // ends when a condition on a row's number becomes false
            return {place.stops_early || reinterpret_cast<const WindowAgg*>(plan)->runCondition != NIL, place.splits};
        case T_MergeJoin:  // ends with either side
            return {true, place.splits};
        case T_CustomScan:
            return is_batch_node(plan) ? place : Place{true, false};
        default:
            return place;
    }
}

// The position of a node's right child. A side that a merge join may restore to a marked row is not split.
Place place_right(const Plan* plan, Place place)
{
    if (IsA(plan, MergeJoin)) return {true, false};
    if (!IsA(plan, NestLoop)) return place;
    const auto* join = reinterpret_cast<const Join*>(plan);
    const bool one_match = join->inner_unique || join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI;
    return {place.stops_early || one_match, place.splits};
}

void rewrite_plan(Rewriting* rewriting, Plan** link, Place place);

void rewrite_plans(Rewriting* rewriting, List* plans, Place place)
{
    ListCell* cell;
    foreach (cell, plans) rewrite_plan(rewriting, reinterpret_cast<Plan**>(&lfirst(cell)), place);
}

// Rewrite the nodes below a node, except those that parallel workers execute.
void rewrite_children(Rewriting* rewriting, Plan* plan, Place place)
{
    const Place below = place_below(plan, place);
    switch (nodeTag(plan)) {
        case T_Gather:
        case T_GatherMerge:
            return;
        case T_SubqueryScan:
            rewrite_plan(rewriting, &castNode(SubqueryScan, plan)->subplan, below);
            break;
        case T_Append:
            rewrite_plans(rewriting, castNode(Append, plan)->appendplans, below);
            break;
        case T_MergeAppend:
            rewrite_plans(rewriting, castNode(MergeAppend, plan)->mergeplans, below);
            break;
        case T_CustomScan:
            rewrite_plans(rewriting, castNode(CustomScan, plan)->custom_plans, below);
            break;
        case T_CteScan: {
            const int number = castNode(CteScan, plan)->ctePlanId;
            rewriting->scanned = bms_add_member(rewriting->scanned, number);
            if (place.stops_early) rewriting->stopped = bms_add_member(rewriting->stopped, number);
            break;
        }
        default:
            break;
    }
    rewrite_plan(rewriting, &plan->lefttree, below);
    rewrite_plan(rewriting, &plan->righttree, place_right(plan, place));
}

void note_late_parameters(Rewriting* rewriting, const Plan* plan)
{
    ListCell* subplan;
    foreach (subplan, plan->initPlan) {
        ListCell* number;
        foreach (number, static_cast<SubPlan*>(lfirst(subplan))->setParam) {
            rewriting->late_parameters = bms_add_member(rewriting->late_parameters, lfirst_int(number));
        }
    }
}

void rewrite_plan(Rewriting* rewriting, Plan** link, Place place)
{
    Plan* plan = *link;
    if (plan == nullptr) return;
    check_stack_depth();
    note_late_parameters(rewriting, plan);
    rewrite_children(rewriting, plan, place);
    if (is_batch_node(plan)) {
        auto* batch = castNode(CustomScan, plan);
        const auto* child = static_cast<Plan*>(linitial(batch->custom_plans));
        if (!may_read_ahead(reading_place(rewriting, place), child)) *link = without_batch(batch);
    }
    if (!place.splits) return;
    Split split = {};
    while (may_split(*link) && find_split(rewriting->statement, *link, &split) &&
           may_apply(reading_place(rewriting, place), split, *link)) {
        *link = split_node(*link, split, rewriting->next_node_number++);
    }
}

// Rewrite the sub-plans, except those that parallel workers may execute. The loop goes from the last to the first,
// because a common table expression is planned before its readers. Other sub-plans may be stopped early.
void rewrite_subplans(Rewriting* rewriting, bool splits)
{
    const PlannedStmt* statement = rewriting->statement;
    for (int number = list_length(statement->subplans); number > 0; --number) {
        ListCell* cell = list_nth_cell(statement->subplans, number - 1);
        const Plan* plan = static_cast<Plan*>(lfirst(cell));
        if (plan == nullptr || (statement->parallelModeNeeded && plan->parallel_safe)) continue;
        const bool read_to_end =
            bms_is_member(number, rewriting->scanned) && !bms_is_member(number, rewriting->stopped);
        rewrite_plan(rewriting, reinterpret_cast<Plan**>(&lfirst(cell)), {!read_to_end, splits});
    }
}

// Statements that lock or change rows keep the planner's plan. So do cursors: they may move backward, and WHERE CURRENT
// OF searches for the node that reads the table.
bool may_split_nodes(const PlannedStmt* statement, int cursor_options)
{
    if (statement->subplans == NIL || statement->rowMarks != NIL || statement->hasModifyingCTE) return false;
    if (statement->commandType != CMD_SELECT && statement->commandType != CMD_INSERT) return false;
    return (cursor_options & (CURSOR_OPT_SCROLL | CURSOR_OPT_FAST_PLAN)) == 0;
}

// A cursor may be closed before its last row, so its plan counts as stopped early.
void rewrite_statement(PlannedStmt* statement, int cursor_options)
{
    const bool splits = may_split_nodes(statement, cursor_options) && any_subplan_searches(statement);
    Rewriting rewriting = {statement, 0, nullptr, nullptr, nullptr};
    if (splits) {
        const int largest = Max(largest_node_number(statement->planTree), largest_number_of(statement->subplans));
        rewriting.next_node_number = largest + 1;
    }
    rewrite_plan(&rewriting, &statement->planTree, {(cursor_options & CURSOR_OPT_FAST_PLAN) != 0, splits});
    rewrite_subplans(&rewriting, splits);
}

// From 19 on a planner gets the state of EXPLAIN too.
#if PG_VERSION_NUM >= 190000
#define PGWARP_EXPLAIN_PARAMETER , ExplainState* explain
#define PGWARP_EXPLAIN_ARGUMENT , explain
#else
#define PGWARP_EXPLAIN_PARAMETER
#define PGWARP_EXPLAIN_ARGUMENT
#endif

PlannedStmt* plan_as_before(Query* query, const char* text, int cursor_options,
                            ParamListInfo parameters PGWARP_EXPLAIN_PARAMETER)
{
    if (previous_planner != nullptr) {
        return previous_planner(query, text, cursor_options, parameters PGWARP_EXPLAIN_ARGUMENT);
    }
    return standard_planner(query, text, cursor_options, parameters PGWARP_EXPLAIN_ARGUMENT);
}

PlannedStmt* plan_statement(Query* query, const char* text, int cursor_options,
                            ParamListInfo parameters PGWARP_EXPLAIN_PARAMETER)
{
    PlannedStmt* statement = nullptr;
    const bool before = knn_batch_plans_are_checked;
    knn_batch_plans_are_checked = true;
    PG_TRY();
    {
        statement = plan_as_before(query, text, cursor_options, parameters PGWARP_EXPLAIN_ARGUMENT);
    }
    PG_FINALLY();
    {
        knn_batch_plans_are_checked = before;
    }
    PG_END_TRY();
    if (setting_knn_batch) rewrite_statement(statement, cursor_options);
    drop_unread_distance(statement);
    return statement;
}

}  // namespace

void init_subplan_batch()
{
    previous_planner = planner_hook;
    planner_hook = plan_statement;
}

}  // namespace pgwarp
