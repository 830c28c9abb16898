#include "postgres/executor/limit_hint.h"

#include "postgres/executor/knn_batch.h"
#include "postgres/executor/knn_filter.h"
#include "postgres/executor/partition_search.h"
#include "postgres/executor/scan_watch.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

namespace
{

ExecutorStart_hook_type previous_executor_start = nullptr;

// Note that some rows of a node don't reach the LIMIT.
void note_dropped_rows(LimitHint* hint)
{
    hint->filtered = true;
    hint->bound.limit = nullptr;
}

// A node, and the hint for the nodes below it.
struct PlanAbove {
    const PlanState* node;
    LimitHint hint;
};

bool is_sub_select(const List* sub_selects, const PlanState* node)
{
    ListCell* cell;
    foreach (cell, sub_selects) {
        if (static_cast<const SubPlanState*>(lfirst(cell))->planstate == node) return true;
    }
    return false;
}

// The hint for a node from the one above it; null outside of a LIMIT. A sub-select in an expression of a node runs
// by itself: the LIMIT above the node doesn't apply to it.
const LimitHint* hint_from_above(const void* state, const PlanState* node)
{
    const auto* above = static_cast<const PlanAbove*>(state);
    if (above == nullptr) return nullptr;
    const bool apart = is_sub_select(above->node->initPlan, node) || is_sub_select(above->node->subPlan, node);
    return apart ? nullptr : &above->hint;
}

// planstate_tree_walker callback; `state` is a PlanAbove, null outside of a LIMIT. The bound goes down where
// ExecSetTupleBound() would take it, and no further.
bool visit_node(PlanState* node, void* state)
{
    const LimitHint* given = hint_from_above(state, node);
    PlanAbove here = {node, given != nullptr ? *given : LimitHint{}};
    LimitHint& hint = here.hint;
    PlanAbove* below = nullptr;
    switch (nodeTag(node)) {
        case T_LimitState:
            hint.limit = castNode(LimitState, node);
            hint.bound.limit = hint.limit;
            hint.filtered = false;
            hint.filter = nullptr;
            hint.partitions = nullptr;
            below = &here;
            break;
        case T_SubqueryScanState:
        case T_ResultState:
        case T_AppendState:
        case T_MergeAppendState:
            // One row in, at most one row out.
            if (given != nullptr) {
                if (node->qual != nullptr) note_dropped_rows(&hint);
                below = &here;
            }
            break;
        case T_LockRowsState:
            // Rows that are locked, gone or changed meanwhile are dropped.
            if (given != nullptr) {
                note_dropped_rows(&hint);
                below = &here;
            }
            break;
        case T_CustomScanState:
            if (is_knn_filter(node)) {
                // Only the scan gets the hint. The sub-plans of the conditions are visited below and get none.
                hint.bound.limit = nullptr;
                visit_node(limit_knn_filter(node, &hint), &here);
                break;
            }
            if (given == nullptr) break;
            if (PartitionSearch* partitions = partition_search_of(node)) {
                hint.partitions = partitions;
                limit_partition_search(partitions, hint.bound);
                below = &here;
            } else if (is_knn_batch(node)) {
                note_dropped_rows(&hint);  // it reads ahead, too
                below = &here;
            }
            break;
        case T_IndexScanState:
        case T_IndexOnlyScanState:
            if (given != nullptr) watch_scan(node, hint);
            break;
        default:
            break;
    }
#if PG_VERSION_NUM >= 160000
    return planstate_tree_walker(node, visit_node, below);
#else
    return planstate_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit_node)), below);
#endif
}

// Find the index scans of ours under a LIMIT.
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

}  // namespace

void init_limit_hint()
{
    previous_executor_start = ExecutorStart_hook;
    ExecutorStart_hook = start_executor;
}

int64 limit_hint_rows(const LimitHint& hint)
{
    if (hint.limit == nullptr || hint.limit->noCount || hint.limit->lstate == LIMIT_INITIAL) return 0;
    // WITH TIES reads one row more, the first that is no tie.
    const int64 one_more = hint.limit->limitOption == LIMIT_OPTION_WITH_TIES ? 1 : 0;
    const int64 rows = hint.limit->count + hint.limit->offset + one_more;
    return rows > 0 ? rows : 0;
}

int64 tuples_needed(const TupleBound& bound)
{
    const LimitState* limit = bound.limit;
    if (limit == nullptr || limit->noCount || limit->lstate == LIMIT_INITIAL) return -1;
    if (limit->limitOption == LIMIT_OPTION_WITH_TIES) return -1;
    return limit->count + limit->offset;  // negative where it overflows: no bound either
}

}  // namespace pgwarp
