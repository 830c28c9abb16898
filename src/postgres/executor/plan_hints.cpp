#include "postgres/executor/plan_hints.h"

#include "postgres/executor/knn_batch.h"
#include "postgres/executor/knn_filter.h"
#include "postgres/executor/knn_partitions.h"
#include "postgres/executor/partition_search.h"
#include "postgres/executor/scan_watch.h"
#include "postgres/expression_walk.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

namespace pgwarp
{

namespace
{

ExecutorStart_hook_type previous_executor_start = nullptr;
ExecutorRun_hook_type previous_executor_run = nullptr;

// Note that only a share of a node's rows reaches the LIMIT.
void note_dropped_rows(LimitHint* hint, double share)
{
    hint->filtered = true;
    hint->bound.limit = nullptr;
    hint->pass_rate *= share;
}

// Returns the planner's estimate of the share of a child's rows that a node passes on.
double share_handed_on(const PlanState* node, const PlanState* below)
{
    return Min(1.0, Max(1.0, node->plan->plan_rows) / Max(1.0, below->plan->plan_rows));
}

// A node, and the hint for the nodes below it.
struct PlanAbove {
    const PlanState* node;
    LimitHint hint;
    Reading reading;  // of the node itself
};

const SubPlanState* find_sub_select(const List* sub_selects, const PlanState* node)
{
    ListCell* cell;
    foreach (cell, sub_selects) {
        const auto* sub_select = static_cast<const SubPlanState*>(lfirst(cell));
        if (sub_select->planstate == node) return sub_select;
    }
    return nullptr;
}

// A hint without a LIMIT.
LimitHint hint_of(Reading reading)
{
    LimitHint hint = {};
    hint.reading = reading;
    return hint;
}

// The inner side of a nested loop is read for each row of the outer side, independent of a LIMIT above: to its end, or
// to the first match if one match suffices.
LimitHint hint_of_inner(const NestLoopState* join)
{
    return hint_of(join->js.single_match || join->js.jointype == JOIN_ANTI ? Reading::some : Reading::all);
}

// Returns the part of a sub-select's rows that a node reads. A CTE hangs on the topmost node of its query, and is read
// as far as this query is, unless that node is the query's LIMIT.
Reading reading_of(const SubPlanState* sub_select, const PlanAbove* above)
{
    const SubLinkType type = sub_select->subplan->subLinkType;
    if (type == CTE_SUBLINK) return IsA(above->node, LimitState) ? above->hint.reading : above->reading;
    return type == ARRAY_SUBLINK ? Reading::all : Reading::some;
}

// Derives the hint for a node from the one above it. A sub-select in an expression of a node runs by itself: a LIMIT
// above the node does not apply to it.
LimitHint hint_from_above(const PlanAbove* above, const PlanState* node)
{
    if (above == nullptr) return hint_of(Reading::all_at_once);
    const SubPlanState* sub_select = find_sub_select(above->node->initPlan, node);
    if (sub_select == nullptr) sub_select = find_sub_select(above->node->subPlan, node);
    if (sub_select != nullptr) return hint_of(reading_of(sub_select, above));
    if (IsA(above->node, NestLoopState) && node == innerPlanState(above->node)) {
        return hint_of_inner(reinterpret_cast<const NestLoopState*>(above->node));
    }
    return above->hint;
}

// Whether a window function may need rows after the current one and its peers.
bool needs_rows_behind(Node* node, void*)
{
    if (node == nullptr) return false;
    if (IsA(node, WindowFunc)) {
        const Oid function = castNode(WindowFunc, node)->winfnoid;
        return function != F_ROW_NUMBER && function != F_RANK_ && function != F_DENSE_RANK_;
    }
    return walk_expression(node, needs_rows_behind, nullptr);
}

// Whether a window's functions may read all its rows before it returns the first.
bool looks_ahead(const WindowAgg* window)
{
    return window->ordNumCols == 0 || needs_rows_behind(reinterpret_cast<Node*>(window->plan.targetlist), nullptr);
}

// LIMIT NULL and OFFSET alone read on to the end.
LimitHint hint_below_limit(const LimitState* limit, const LimitHint& above)
{
    const bool only_skips = reinterpret_cast<const Limit*>(limit->ps.plan)->limitCount == nullptr;
    LimitHint hint = hint_of(only_skips ? above.reading : Reading::some);
    hint.above_limit = above.reading;
    hint.limit = limit;
    hint.bound.limit = limit;
    hint.pass_rate = 1.0;
    return hint;
}

void hint_below_custom_scan(PlanState* node, LimitHint* hint)
{
    if (is_knn_filter(node)) {
        // The LIMIT counts rows that passed. Only the scan gets the filter; sub-plans of the conditions get no hint.
        hint->bound.limit = nullptr;
        limit_knn_filter(node, hint);
    } else if (PartitionSearch* partitions = partition_search_of(node)) {
        if (hint->limit != nullptr) hint->partitions = partitions;
        limit_knn_partitions(node, hint->bound);
    } else if (is_knn_batch(node)) {
        note_dropped_rows(hint, 1.0);  // it also reads ahead
    } else {
        *hint = hint_of(Reading::some);
    }
}

// Changes a node's hint into the hint for the nodes below it. The bound moves down only where ExecSetTupleBound() would
// move it.
void hint_below(PlanState* node, LimitHint* hint)
{
    switch (nodeTag(node)) {
        case T_LimitState:
            *hint = hint_below_limit(castNode(LimitState, node), *hint);
            break;
        case T_SubqueryScanState:
            if (node->qual == nullptr) break;
            note_dropped_rows(hint, share_handed_on(node, castNode(SubqueryScanState, node)->subplan));
            break;
        case T_ResultState:
            if (node->qual != nullptr) note_dropped_rows(hint, share_handed_on(node, outerPlanState(node)));
            break;
        case T_AppendState:
        case T_MergeAppendState:
            break;                    // each input row gives at most one output row
        case T_LockRowsState:         // drops rows that are locked, deleted or changed meanwhile
        case T_IncrementalSortState:  // reads on to the next value of the sorted columns
        case T_ProjectSetState:       // drops rows for which the functions return no row
            note_dropped_rows(hint, 1.0);
            break;
        case T_NestLoopState:
            note_dropped_rows(hint, share_handed_on(node, outerPlanState(node)));
            break;
        case T_SortState:
        case T_HashState:
            *hint = hint_of(Reading::all);
            break;
        case T_AggState:
            if (castNode(AggState, node)->aggstrategy == AGG_SORTED) {
                note_dropped_rows(hint, share_handed_on(node, outerPlanState(node)));
            } else {
                *hint = hint_of(Reading::all);
            }
            break;
        case T_WindowAggState:
            if (looks_ahead(castNode(WindowAgg, node->plan))) {
                *hint = hint_of(Reading::all);
            } else {
                note_dropped_rows(hint, 1.0);
            }
            break;
        case T_UniqueState:
        case T_GroupState:
            note_dropped_rows(hint, share_handed_on(node, outerPlanState(node)));
            break;
        case T_HashJoinState:
        case T_MergeJoinState:
        case T_RecursiveUnionState:
        case T_MaterialState:
        case T_MemoizeState:
        case T_SetOpState:
        case T_ModifyTableState:
        case T_GatherState:
        case T_GatherMergeState:
            *hint = hint_of(hint->reading);
            break;
        case T_CustomScanState:
            hint_below_custom_scan(node, hint);
            break;
        default:
            *hint = hint_of(Reading::some);
            break;
    }
}

void hint_scan(PlanState* node, LimitHint hint)
{
    const bool is_hinted = hint.limit != nullptr || hint.filter != nullptr || hint.reading != Reading::some;
    if (!(is_hinted || leads(hint.leading)) || !may_watch_scan(node)) return;
    hint.node = node;
    hint.filtered = hint.filtered || node->qual != nullptr;
    if (hint.partitions != nullptr) add_partition_scan(node, &hint);
    watch_scan(node, hint);
}

// planstate_tree_walker callback; `state` is a PlanAbove, null for the topmost node.
bool visit_node(PlanState* node, void* state)
{
    const LimitHint given = hint_from_above(static_cast<const PlanAbove*>(state), node);
    if (IsA(node, IndexScanState) || IsA(node, IndexOnlyScanState)) hint_scan(node, given);
    PlanAbove here = {node, given, given.reading};
    hint_below(node, &here.hint);
#if PG_VERSION_NUM >= 160000
    return planstate_tree_walker(node, visit_node, &here);
#else
    return planstate_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit_node)), &here);
#endif
}

// Find the scans of pgwarp indexes, and give them hints about the plan above them.
void start_executor(QueryDesc* query, int flags)
{
    if (previous_executor_start != nullptr) {
        previous_executor_start(query, flags);
    } else {
        standard_ExecutorStart(query, flags);
    }
    if ((flags & EXEC_FLAG_EXPLAIN_ONLY) != 0 || query->planstate == nullptr) return;
    visit_node(query->planstate, nullptr);
}

// Note whether this call reads the query to its end.
#if PG_VERSION_NUM >= 180000
void run_executor(QueryDesc* query, ScanDirection direction, uint64 count)
{
    note_execution(query->estate, count == 0);
    (previous_executor_run != nullptr ? previous_executor_run : standard_ExecutorRun)(query, direction, count);
}
#else
void run_executor(QueryDesc* query, ScanDirection direction, uint64 count, bool once)
{
    note_execution(query->estate, count == 0);
    (previous_executor_run != nullptr ? previous_executor_run : standard_ExecutorRun)(query, direction, count, once);
}
#endif

}  // namespace

void init_plan_hints()
{
    previous_executor_start = ExecutorStart_hook;
    ExecutorStart_hook = start_executor;
    previous_executor_run = ExecutorRun_hook;
    ExecutorRun_hook = run_executor;
}

}  // namespace pgwarp
