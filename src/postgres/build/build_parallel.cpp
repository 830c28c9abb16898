// A build whose heap is scanned by background workers and the leader together. Each has its own connection and appends
// its rows to the leader's build in the engine.
#include "postgres/build/build.h"

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
constexpr uint64 sort_key = UINT64CONST(0x9A57000000000002);

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
    int sorting;  // participants that there may be
    IncludedTotals included;
};

ParallelTableScanDesc scan_of(SharedBuild* shared)
{
    return reinterpret_cast<ParallelTableScanDesc>(reinterpret_cast<char*>(shared) + BUFFERALIGN(sizeof(SharedBuild)));
}

// Scan this process's share of the heap, and add up.
void collect_share(Relation heap, Relation index, IndexInfo* info, SharedBuild* shared, Sharedsort* shared_sort,
                   bool progress)
{
    auto* build = static_cast<EngineBuild*>(palloc(sizeof(EngineBuild)));
    *build = shared->build;
    RowCollector* collector = open_collector(build);
    SortCoordinateData coordinate = {};
    coordinate.isWorker = true;
    coordinate.nParticipants = -1;
    coordinate.sharedsort = shared_sort;
    if (shared_sort != nullptr) {
        collector->included = begin_included_sort(index, maintenance_work_mem / shared->sorting, &coordinate);
    }
    TableScanDesc scan = table_beginscan_parallel(heap, scan_of(shared));
    const double tuples = table_index_build_scan(heap, index, info, true, progress, collect_row, collector, scan);
    const double indexed = collector->indexed;
    IncludedSort* included = collector->included;
    close_collector(collector);
    IncludedTotals totals = {};
    if (included != nullptr) {
        perform_included_sort(included);
        totals = included_totals(included);
    }
    SpinLockAcquire(&shared->mutex);
    shared->done += 1;
    shared->heap_tuples += tuples;
    shared->index_tuples += indexed;
    add_totals(&shared->included, totals);
    if (info->ii_BrokenHotChain) shared->broken_hot_chain = true;
    SpinLockRelease(&shared->mutex);
    ConditionVariableSignal(&shared->done_condition);
    if (included != nullptr) end_included_sort(included);
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
    shared->sorting = context->nworkers + 1;
    shared->included = {};
    table_parallelscan_initialize(heap, scan_of(shared), snapshot);
    shm_toc_insert(context->toc, shared_key, shared);
    return shared;
}

// Lay out the shared memory of the sort of included tuples; null when there are none.
Sharedsort* make_shared_sort(ParallelContext* context, Relation index, Size bytes)
{
    if (!has_included_columns(index)) return nullptr;
    auto* shared = static_cast<Sharedsort*>(shm_toc_allocate(context->toc, bytes));
    tuplesort_initialize_shared(shared, context->nworkers + 1, context->seg);
    shm_toc_insert(context->toc, sort_key, shared);
    return shared;
}

// Take over what the participants sorted. The context lives until that is stored.
void take_included(ParallelContext* context, Relation index, Sharedsort* shared_sort, CollectedRows* collected)
{
    auto* coordinate = static_cast<SortCoordinate>(palloc0(sizeof(SortCoordinateData)));
    coordinate->isWorker = false;
    coordinate->nParticipants = context->nworkers_launched + 1;
    coordinate->sharedsort = shared_sort;
    collected->included = begin_included_sort(index, maintenance_work_mem, coordinate);
    perform_included_sort(collected->included);
    collected->parallel = context;
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
    const Size sort_bytes = has_included_columns(index) ? tuplesort_estimate_shared(context->nworkers + 1) : 0;
    if (sort_bytes > 0) {
        shm_toc_estimate_chunk(&context->estimator, sort_bytes);
        shm_toc_estimate_keys(&context->estimator, 1);
    }
    InitializeParallelDSM(context);
    if (context->seg == nullptr) {
        leave_parallel(context, snapshot);
        return false;
    }
    if (!build->begun) begin_engine_build(build);
    SharedBuild* shared = make_shared(context, heap, index, info, build, snapshot, bytes);
    Sharedsort* shared_sort = make_shared_sort(context, index, sort_bytes);
    LaunchParallelWorkers(context);
    if (context->nworkers_launched == 0) {
        WaitForParallelWorkersToFinish(context);
        leave_parallel(context, snapshot);
        return false;
    }
    ereport(DEBUG1, (errmsg("using %d parallel workers", context->nworkers_launched)));
    collect_share(heap, index, info, shared, shared_sort, true);
    WaitForParallelWorkersToAttach(context);
    wait_for_participants(shared, context->nworkers_launched + 1);
    collected->heap_tuples = shared->heap_tuples;
    collected->index_tuples = shared->index_tuples;
    collected->included_totals = shared->included;
    if (shared->broken_hot_chain) info->ii_BrokenHotChain = true;
    WaitForParallelWorkersToFinish(context);
    if (shared_sort != nullptr) {
        take_included(context, index, shared_sort, collected);
        if (IsMVCCSnapshot(snapshot)) UnregisterSnapshot(snapshot);
        return true;
    }
    leave_parallel(context, snapshot);
    return true;
}

}  // namespace pgwarp

// Runs in each worker.
void pgwarp_build_worker(dsm_segment* segment, shm_toc* toc)
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
    auto* shared_sort = static_cast<Sharedsort*>(shm_toc_lookup(toc, sort_key, true));
    if (shared_sort != nullptr) tuplesort_attach_shared(shared_sort, segment);
    collect_share(heap, index, info, shared, shared_sort, false);
    index_close(index, index_lock);
    table_close(heap, heap_lock);
}
