#include "postgres/executor/scan_watch.h"

#include "postgres/am/methods.h"

extern "C" {
#include "access/genam.h"
#include "executor/executor.h"
#include "nodes/memnodes.h"
#include "storage/bufmgr.h"
}

namespace pgwarp
{

namespace
{

struct WatchedScan {
    PlanState* node;
    ExecProcNodeMtd execute;  // the node's own function
    LimitHint hint;
    WatchedScan* next;
};

// The watched scans of one query, in the order of its plan. Found through a callback of the query's memory context.
struct WatchedScans {
    MemoryContextCallback anchor;
    WatchedScan* first;
    WatchedScan* last;
    WatchedScan* expected;  // the scan that began last: usually scans begin in the order of the plan
    bool to_the_end;        // the executor runs to the query's end
};

// The list lies in the context itself, so the callback has nothing to free.
void end_watch(void*) {}

WatchedScans* find_watched_scans(const EState* executor)
{
    for (MemoryContextCallback* callback = executor->es_query_cxt->reset_cbs; callback != nullptr;
         callback = callback->next) {
        if (callback->func == end_watch) return static_cast<WatchedScans*>(callback->arg);
    }
    return nullptr;
}

WatchedScans* make_watched_scans(EState* executor)
{
    auto* made = static_cast<WatchedScans*>(MemoryContextAllocZero(executor->es_query_cxt, sizeof(WatchedScans)));
    made->anchor.func = end_watch;
    made->anchor.arg = made;
    MemoryContextRegisterResetCallback(executor->es_query_cxt, &made->anchor);
    return made;
}

// Search from the expected scan on, then from the first.
WatchedScan* find_watched_scan(const PlanState* node)
{
    WatchedScans* scans = find_watched_scans(node->state);
    WatchedScan* found = scans->expected;
    while (found != nullptr && found->node != node) found = found->next;
    if (found == nullptr) found = scans->first;
    while (found != nullptr && found->node != node) found = found->next;
    if (found == nullptr) elog(ERROR, "an index scan is executed that nobody watches");
    scans->expected = found;
    return found;
}

#if PG_VERSION_NUM >= 190000
// Whether the statement changes the scanned table, as flags of its scans.
uint32 read_only_hint(ScanState* scan)
{
    return ScanRelIsReadOnly(scan) ? SO_HINT_REL_READ_ONLY : SO_NONE;
}
#endif

// Begin the scan as IndexNext() of nodeIndexscan.c does.
void make_scan(IndexScanState* node, const LimitHint& hint)
{
    if (node->iss_ScanDesc != nullptr) return;
#if PG_VERSION_NUM >= 190000
    node->iss_ScanDesc = index_beginscan(node->ss.ss_currentRelation, node->iss_RelationDesc,
                                         node->ss.ps.state->es_snapshot, node->iss_Instrument, node->iss_NumScanKeys,
                                         node->iss_NumOrderByKeys, read_only_hint(&node->ss));
#elif PG_VERSION_NUM >= 180000
    node->iss_ScanDesc =
        index_beginscan(node->ss.ss_currentRelation, node->iss_RelationDesc, node->ss.ps.state->es_snapshot,
                        &node->iss_Instrument, node->iss_NumScanKeys, node->iss_NumOrderByKeys);
#else
    node->iss_ScanDesc =
        index_beginscan(node->ss.ss_currentRelation, node->iss_RelationDesc, node->ss.ps.state->es_snapshot,
                        node->iss_NumScanKeys, node->iss_NumOrderByKeys);
#endif
    give_hint(node->iss_ScanDesc, hint);
    // Otherwise the node's own function computes the keys and rescans.
    if (node->iss_NumRuntimeKeys == 0 || node->iss_RuntimeKeysReady) {
        index_rescan(node->iss_ScanDesc, node->iss_ScanKeys, node->iss_NumScanKeys, node->iss_OrderByKeys,
                     node->iss_NumOrderByKeys);
    }
}

// Begin the scan as IndexOnlyNext() of nodeIndexonlyscan.c does.
void make_only_scan(IndexOnlyScanState* node, const LimitHint& hint)
{
    if (node->ioss_ScanDesc != nullptr) return;
#if PG_VERSION_NUM >= 190000
    node->ioss_ScanDesc = index_beginscan(node->ss.ss_currentRelation, node->ioss_RelationDesc,
                                          node->ss.ps.state->es_snapshot, node->ioss_Instrument, node->ioss_NumScanKeys,
                                          node->ioss_NumOrderByKeys, read_only_hint(&node->ss));
#elif PG_VERSION_NUM >= 180000
    node->ioss_ScanDesc =
        index_beginscan(node->ss.ss_currentRelation, node->ioss_RelationDesc, node->ss.ps.state->es_snapshot,
                        &node->ioss_Instrument, node->ioss_NumScanKeys, node->ioss_NumOrderByKeys);
#else
    node->ioss_ScanDesc =
        index_beginscan(node->ss.ss_currentRelation, node->ioss_RelationDesc, node->ss.ps.state->es_snapshot,
                        node->ioss_NumScanKeys, node->ioss_NumOrderByKeys);
#endif
    node->ioss_ScanDesc->xs_want_itup = true;
    node->ioss_VMBuffer = InvalidBuffer;
    give_hint(node->ioss_ScanDesc, hint);
    if (node->ioss_NumRuntimeKeys == 0 || node->ioss_RuntimeKeysReady) {
        index_rescan(node->ioss_ScanDesc, node->ioss_ScanKeys, node->ioss_NumScanKeys, node->ioss_OrderByKeys,
                     node->ioss_NumOrderByKeys);
    }
}

bool reads_all(Reading reading, bool to_the_end)
{
    return reading == Reading::all || (reading == Reading::all_at_once && to_the_end);
}

// Replaces the node's own function until the scan is made. If another library has wrapped this function meanwhile, it
// stays in place and calls the node's own.
TupleTableSlot* execute_watched_scan(PlanState* node)
{
    WatchedScan* watched = find_watched_scan(node);
    LimitHint& hint = watched->hint;
    const bool to_the_end = find_watched_scans(node->state)->to_the_end;
    hint.reads_all = reads_all(hint.reading, to_the_end);
    hint.unlimited_all = reads_all(hint.above_limit, to_the_end);
    if (IsA(node, IndexScanState)) {
        make_scan(castNode(IndexScanState, node), hint);
    } else {
        make_only_scan(castNode(IndexOnlyScanState, node), hint);
    }
    if (node->ExecProcNodeReal == execute_watched_scan) ExecSetExecProcNode(node, watched->execute);
    return watched->execute(node);
}

// Returns the index that the node scans in order of distance; null for other nodes and for scans that were made
// already.
Relation ordered_index(PlanState* node)
{
    if (IsA(node, IndexOnlyScanState)) {
        const auto* scan = reinterpret_cast<const IndexOnlyScanState*>(node);
        return scan->ioss_ScanDesc == nullptr && scan->ioss_NumOrderByKeys > 0 ? scan->ioss_RelationDesc : nullptr;
    }
    const auto* scan = reinterpret_cast<const IndexScanState*>(node);
    return scan->iss_ScanDesc == nullptr && scan->iss_NumOrderByKeys > 0 ? scan->iss_RelationDesc : nullptr;
}

}  // namespace

void note_execution(const EState* executor, bool to_the_end)
{
    if (WatchedScans* scans = find_watched_scans(executor)) scans->to_the_end = to_the_end;
}

bool may_watch_scan(PlanState* node)
{
    Relation index = ordered_index(node);
    if (index == nullptr || node->plan->parallel_aware) return false;
    // The walk meets a sub-plan of several nodes, such as the scans of a UNION ALL, once for each node.
    if (node->ExecProcNodeReal == execute_watched_scan) return false;
    return find_access_method(index->rd_indam->amoptions) != nullptr;
}

void watch_scan(PlanState* node, const LimitHint& hint)
{
    WatchedScans* scans = find_watched_scans(node->state);
    if (scans == nullptr) scans = make_watched_scans(node->state);
    auto* watched = static_cast<WatchedScan*>(MemoryContextAllocZero(node->state->es_query_cxt, sizeof(WatchedScan)));
    watched->node = node;
    watched->execute = node->ExecProcNodeReal;
    watched->hint = hint;
    watched->hint.node = node;
    if (scans->last != nullptr) {
        scans->last->next = watched;
    } else {
        scans->first = watched;
        scans->expected = watched;
    }
    scans->last = watched;
    ExecSetExecProcNode(node, execute_watched_scan);
}

void lead_scan(PlanState* node, const Leading& leading)
{
    if (!may_watch_scan(node)) return;
    LimitHint hint = {};
    hint.leading = leading;
    watch_scan(node, hint);
}

}  // namespace pgwarp
