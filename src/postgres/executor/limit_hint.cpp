#include "postgres/executor/limit_hint.h"

#include "postgres/access/methods.h"
#include "postgres/executor/distance_stop.h"
#include "postgres/executor/knn_batch.h"
#include "postgres/executor/partition_search.h"
#include "postgres/executor/subplan_batch.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

// A node whose first execution will begin its scan.
struct WatchedScan {
    PlanState* node;
    LimitHint hint;
    WatchedScan* next;   // begun to be watched before this one
    WatchedScan* later;  // and after it
};

namespace
{

ExecutorStart_hook_type previous_executor_start = nullptr;
// PostgreSQL's own
ExecProcNodeMtd execute_index_scan = nullptr;
ExecProcNodeMtd execute_index_only_scan = nullptr;
WatchedScan* watched_scans = nullptr;  // of all running queries of this process, the latest first
WatchedScan* expected_scan = nullptr;  // scans are begun in the order of the plan
Oid pending_index = InvalidOid;
LimitHint pending_hint = {};

// Forget the watched scans of a query whose memory goes away.
void forget_scan(void* argument)
{
    auto* watched = static_cast<WatchedScan*>(argument);
    (watched->later != nullptr ? watched->later->next : watched_scans) = watched->next;
    if (watched->next != nullptr) watched->next->later = watched->later;
    if (expected_scan == watched) expected_scan = nullptr;
}

const WatchedScan* find_watched(const PlanState* node)
{
    const WatchedScan* watched = expected_scan;
    if (watched == nullptr || watched->node != node) {
        for (watched = watched_scans; watched != nullptr && watched->node != node;) watched = watched->next;
    }
    if (watched != nullptr) expected_scan = watched->later;
    return watched;
}

// What the two kinds of index scans have in common.
struct ScanNode {
    Relation index;
    const IndexScanDescData* scan;
    int order_by_count;
    ExecProcNodeMtd* execute;
};

ScanNode view_scan(PlanState* node)
{
    if (IsA(node, IndexOnlyScanState)) {
        const auto* scan = castNode(IndexOnlyScanState, node);
        return {scan->ioss_RelationDesc, scan->ioss_ScanDesc, scan->ioss_NumOrderByKeys, &execute_index_only_scan};
    }
    const auto* scan = castNode(IndexScanState, node);
    return {scan->iss_RelationDesc, scan->iss_ScanDesc, scan->iss_NumOrderByKeys, &execute_index_scan};
}

// Execute a watched index scan: leave its hint for ambeginscan, which is called within the first execution.
TupleTableSlot* execute_watched_scan(PlanState* node)
{
    const ScanNode scan = view_scan(node);
    if (const WatchedScan* watched = find_watched(node)) {
        pending_index = RelationGetRelid(scan.index);
        pending_hint = watched->hint;
    }
    TupleTableSlot* result = (*scan.execute)(node);
    pending_index = InvalidOid;
    if (view_scan(node).scan != nullptr) ExecSetExecProcNode(node, *scan.execute);
    return result;
}

// Watch an index scan of ours under a LIMIT.
void watch_scan(PlanState* node, const LimitHint& hint)
{
    const ScanNode scan = view_scan(node);
    if (scan.index == nullptr || scan.scan != nullptr || scan.order_by_count == 0) return;
    if (find_access_method(scan.index->rd_indam->amoptions) == nullptr) return;
    if (*scan.execute == nullptr) *scan.execute = node->ExecProcNodeReal;
    if (node->ExecProcNodeReal != *scan.execute) return;  // someone else's wrapper
    MemoryContext context = node->state->es_query_cxt;
    auto* watched = static_cast<WatchedScan*>(MemoryContextAlloc(context, sizeof(WatchedScan)));
    watched->node = node;
    watched->hint = hint;
    watched->hint.node = node;
    watched->hint.filtered = hint.filtered || node->qual != nullptr;
    if (hint.partitions != nullptr) add_partition_scan(node, &watched->hint, watched);
    watched->next = watched_scans;
    watched->later = nullptr;
    if (watched_scans != nullptr) watched_scans->later = watched;
    auto* callback = static_cast<MemoryContextCallback*>(MemoryContextAlloc(context, sizeof(MemoryContextCallback)));
    callback->func = forget_scan;
    callback->arg = watched;
    MemoryContextRegisterResetCallback(context, callback);
    watched_scans = watched;
    ExecSetExecProcNode(node, execute_watched_scan);
}

// planstate_tree_walker callback; `state` is the hint from above, null outside of a LIMIT.
bool visit_node(PlanState* node, void* state)
{
    LimitHint hint = {};
    if (state != nullptr) hint = *static_cast<LimitHint*>(state);
    LimitHint* below = nullptr;
    switch (nodeTag(node)) {
        case T_LimitState:
            hint.limit = castNode(LimitState, node);
            hint.filtered = false;
            hint.partitions = nullptr;
            below = &hint;
            break;
        case T_SubqueryScanState:
        case T_ResultState:
        case T_LockRowsState:
        case T_AppendState:
        case T_MergeAppendState:
            // One row in, at most one row out.
            if (state != nullptr) {
                if (node->qual != nullptr) hint.filtered = true;
                below = &hint;
            }
            break;
        case T_CustomScanState:
            if (state == nullptr) break;
            if (PartitionSearch* partitions = partition_search_of(node)) {
                hint.partitions = partitions;
                limit_partition_search(partitions, hint);
                below = &hint;
            } else if (is_distance_stop(node)) {
                below = &hint;
            } else if (is_knn_batch(node)) {
                hint.filtered = true;  // it reads ahead, too
                below = &hint;
            }
            break;
        case T_IndexScanState:
        case T_IndexOnlyScanState:
            if (state != nullptr) watch_scan(node, hint);
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
    batch_subplans(query, flags);
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

void expect_scan(WatchedScan* scan)
{
    expected_scan = scan;
}

LimitHint take_limit_hint(Oid index)
{
    LimitHint hint = {};
    if (pending_index == index) hint = pending_hint;
    pending_index = InvalidOid;
    return hint;
}

int64 limit_hint_rows(const LimitHint& hint)
{
    if (hint.limit == nullptr || hint.limit->noCount || hint.limit->lstate == LIMIT_INITIAL) return 0;
    const int64 rows = hint.limit->count + hint.limit->offset;
    return rows > 0 ? rows : 0;
}

}  // namespace pgwarp
