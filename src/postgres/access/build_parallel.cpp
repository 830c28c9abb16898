// A build whose heap is scanned by background workers and the leader together. Each has its own connection and appends
// its rows to the leader's build in the engine.
#include "postgres/access/build.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

PGDLLEXPORT void pgwarp_build_worker(dsm_segment* segment, shm_toc* toc);
}

namespace pgwarp
{

namespace
{

constexpr uint64 shared_key = UINT64CONST(0x9A57000000000001);

// In dynamic shared memory; the state of the parallel table scan follows.
struct SharedBuild {
    Oid heap;
    Oid index;
    bool concurrent;
    EngineBuild build;
    slock_t mutex;
    ConditionVariable done_condition;
    int done;
    bool broken_hot_chain;
    double heap_tuples;
    double index_tuples;
};

ParallelTableScanDesc scan_of(SharedBuild* shared)
{
    return reinterpret_cast<ParallelTableScanDesc>(reinterpret_cast<char*>(shared) + BUFFERALIGN(sizeof(SharedBuild)));
}

// Scan this process's share of the heap, and add up.
void collect_share(Relation heap, Relation index, IndexInfo* info, SharedBuild* shared, bool progress)
{
    auto* build = static_cast<EngineBuild*>(palloc(sizeof(EngineBuild)));
    *build = shared->build;
    RowCollector* collector = open_collector(build);
    TableScanDesc scan = table_beginscan_parallel(heap, scan_of(shared));
    const double tuples = table_index_build_scan(heap, index, info, true, progress, collect_row, collector, scan);
    const double indexed = collector->indexed;
    close_collector(collector);
    SpinLockAcquire(&shared->mutex);
    shared->done += 1;
    shared->heap_tuples += tuples;
    shared->index_tuples += indexed;
    if (info->ii_BrokenHotChain) shared->broken_hot_chain = true;
    SpinLockRelease(&shared->mutex);
    ConditionVariableSignal(&shared->done_condition);
}

// Wait until every participant has added up; a worker that died raises an error here.
void wait_for_participants(SharedBuild* shared, int participants)
{
    for (;;) {
        SpinLockAcquire(&shared->mutex);
        const bool all = shared->done == participants;
        SpinLockRelease(&shared->mutex);
        if (all) break;
        ConditionVariableSleep(&shared->done_condition, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
    }
    ConditionVariableCancelSleep();
}

// Lay out the shared memory of a build.
SharedBuild* make_shared(ParallelContext* context, Relation heap, Relation index, const IndexInfo* info,
                         const EngineBuild* build, Snapshot snapshot, Size bytes)
{
    auto* shared = static_cast<SharedBuild*>(shm_toc_allocate(context->toc, bytes));
    shared->heap = RelationGetRelid(heap);
    shared->index = RelationGetRelid(index);
    shared->concurrent = info->ii_Concurrent;
    shared->build = *build;
    SpinLockInit(&shared->mutex);
    ConditionVariableInit(&shared->done_condition);
    shared->done = 0;
    shared->broken_hot_chain = false;
    shared->heap_tuples = 0;
    shared->index_tuples = 0;
    table_parallelscan_initialize(heap, scan_of(shared), snapshot);
    shm_toc_insert(context->toc, shared_key, shared);
    return shared;
}

// Give the parallel context and its snapshot back.
void leave_parallel(ParallelContext* context, Snapshot snapshot)
{
    if (IsMVCCSnapshot(snapshot)) UnregisterSnapshot(snapshot);
    DestroyParallelContext(context);
    ExitParallelMode();
}

}  // namespace

bool collect_in_parallel(Relation heap, Relation index, IndexInfo* info, EngineBuild* build, int workers,
                         CollectedRows* collected)
{
    EnterParallelMode();
    ParallelContext* context = CreateParallelContext("$libdir/pgwarp", "pgwarp_build_worker", workers);
    Snapshot snapshot = info->ii_Concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
    const Size bytes = add_size(BUFFERALIGN(sizeof(SharedBuild)), table_parallelscan_estimate(heap, snapshot));
    shm_toc_estimate_chunk(&context->estimator, bytes);
    shm_toc_estimate_keys(&context->estimator, 1);
    InitializeParallelDSM(context);
    if (context->seg == nullptr) {
        leave_parallel(context, snapshot);
        return false;
    }
    if (!build->begun) begin_engine_build(build);
    SharedBuild* shared = make_shared(context, heap, index, info, build, snapshot, bytes);
    LaunchParallelWorkers(context);
    if (context->nworkers_launched == 0) {
        WaitForParallelWorkersToFinish(context);
        leave_parallel(context, snapshot);
        return false;
    }
    ereport(DEBUG1, (errmsg("using %d parallel workers", context->nworkers_launched)));
    collect_share(heap, index, info, shared, true);
    WaitForParallelWorkersToAttach(context);
    wait_for_participants(shared, context->nworkers_launched + 1);
    collected->heap_tuples = shared->heap_tuples;
    collected->index_tuples = shared->index_tuples;
    if (shared->broken_hot_chain) info->ii_BrokenHotChain = true;
    WaitForParallelWorkersToFinish(context);
    leave_parallel(context, snapshot);
    return true;
}

}  // namespace pgwarp

// Runs in each worker.
void pgwarp_build_worker(dsm_segment*, shm_toc* toc)
{
    using namespace pgwarp;
    auto* shared = static_cast<SharedBuild*>(shm_toc_lookup(toc, shared_key, false));
    const LOCKMODE heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
    const LOCKMODE index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    Relation heap = table_open(shared->heap, heap_lock);
    Relation index = index_open(shared->index, index_lock);
    IndexInfo* info = BuildIndexInfo(index);
    info->ii_Concurrent = shared->concurrent;
    collect_share(heap, index, info, shared, false);
    index_close(index, index_lock);
    table_close(heap, heap_lock);
}
