// A build in which background workers and the leader scan the heap together. Each has its own connection and appends
// its rows to the leader's build in the engine.
#include "postgres/build/build.h"

#include <initializer_list>

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

PGDLLEXPORT void pgwarp_build_worker(dsm_segment* segment, shm_toc* toc);
}

namespace pgwarp
{

namespace
{

constexpr uint64 parallel_shared_key = UINT64CONST(0x9A57000000000001);
constexpr uint64 sort_key = UINT64CONST(0x9A57000000000002);
constexpr uint64 unplaced_sort_key = UINT64CONST(0x9A57000000000004);

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
    double placed;
    NormRange norms;
    int sorting;  // participants, at most
    IncludedTotals included;
};

ParallelTableScanDesc scan_of(SharedBuild* shared)
{
    return reinterpret_cast<ParallelTableScanDesc>(reinterpret_cast<char*>(shared) + BUFFERALIGN(sizeof(SharedBuild)));
}

// The sorts that all participants share.
struct SharedSorts {
    Sharedsort* included;  // null without included columns
    Sharedsort* unplaced;
};

SortCoordinateData worker_of(Sharedsort* shared)
{
    SortCoordinateData coordinate = {};
    coordinate.isWorker = true;
    coordinate.nParticipants = -1;
    coordinate.sharedsort = shared;
    return coordinate;
}

// The coordinate by which the leader merges the participants' sorted runs. Lives as long as the sort.
SortCoordinate leader_of(Sharedsort* shared, const ParallelContext* context)
{
    auto* coordinate = static_cast<SortCoordinate>(palloc0(sizeof(SortCoordinateData)));
    coordinate->isWorker = false;
    coordinate->nParticipants = context->nworkers_launched + 1;
    coordinate->sharedsort = shared;
    return coordinate;
}

// Collect this process's share of the heap, and add its counts to the shared ones.
void collect_share(Relation heap, Relation index, IndexInfo* info, SharedBuild* shared, const SharedSorts& sorts,
                   bool progress)
{
    auto* build = static_cast<EngineBuild*>(palloc(sizeof(EngineBuild)));
    *build = shared->build;
    SortCoordinateData unplaced_coordinate = worker_of(sorts.unplaced);
    UnplacedSort* unplaced = begin_unplaced_sort(work_mem, build->shape.attribute_count, &unplaced_coordinate);
    RowCollector* collector = open_collector(index, build, unplaced);
    SortCoordinateData coordinate = worker_of(sorts.included);
    if (sorts.included != nullptr) {
        collector->included = begin_included_sort(index, maintenance_work_mem / shared->sorting, &coordinate);
    }
    TableScanDesc scan = table_beginscan_parallel(heap, scan_of(shared) PGWARP_NO_SCAN_FLAGS);
    const double tuples = table_index_build_scan(heap, index, info, true, progress, collect_row, collector, scan);
    const double indexed = collector->indexed;
    const NormRange norms = collector->norms;
    IncludedSort* included = collector->included;
    close_collector(collector);
    perform_unplaced_sort(unplaced);
    IncludedTotals totals = {};
    if (included != nullptr) {
        perform_included_sort(included);
        totals = included_totals(included);
    }
    SpinLockAcquire(&shared->mutex);
    shared->done += 1;
    shared->heap_tuples += tuples;
    shared->placed += indexed;
    shared->norms = join_ranges(shared->norms, norms);
    add_totals(&shared->included, totals);
    if (info->ii_BrokenHotChain) shared->broken_hot_chain = true;
    SpinLockRelease(&shared->mutex);
    ConditionVariableSignal(&shared->done_condition);
    end_unplaced_sort(unplaced);
    if (included != nullptr) end_included_sort(included);
}

// Wait until every participant has added its counts. Raises an error when a worker has died.
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
    shared->placed = 0;
    shared->norms = {};
    shared->sorting = context->nworkers + 1;
    shared->included = {};
    table_parallelscan_initialize(heap, scan_of(shared), snapshot);
    shm_toc_insert(context->toc, parallel_shared_key, shared);
    return shared;
}

// Lay out the shared memory of a sort.
Sharedsort* make_shared_sort(ParallelContext* context, uint64 key, Size bytes)
{
    auto* shared = static_cast<Sharedsort*>(shm_toc_allocate(context->toc, bytes));
    tuplesort_initialize_shared(shared, context->nworkers + 1, context->seg);
    shm_toc_insert(context->toc, key, shared);
    return shared;
}

// Merge the participants' sorted tuples. They lie in the parallel context's files until they are stored, so the context
// stays.
void take_included(ParallelContext* context, Relation index, Sharedsort* shared_sort, CollectedRows* collected)
{
    collected->included = begin_included_sort(index, maintenance_work_mem, leader_of(shared_sort, context));
    perform_included_sort(collected->included);
    collected->parallel = context;
}

// Copy the unplaced rows of all participants; usually there are few.
void take_unplaced(const ParallelContext* context, Sharedsort* shared_sort, const EngineBuild* build,
                   CollectedRows* collected)
{
    const uint32 attributes = build->shape.attribute_count;
    UnplacedSort* sort = begin_unplaced_sort(work_mem, attributes, leader_of(shared_sort, context));
    perform_unplaced_sort(sort);
    collected->unplaced = begin_unplaced_sort(work_mem, attributes, nullptr);
    for (UnplacedRow row; next_unplaced(sort, &row);) {
        CHECK_FOR_INTERRUPTS();
        add_unplaced(collected->unplaced, row);
    }
    end_unplaced_sort(sort);
}

// Release the parallel context and its snapshot.
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
    const Size sort_bytes = tuplesort_estimate_shared(context->nworkers + 1);
    const int sort_count = has_included_columns(index) ? 2 : 1;
    for (int i = 0; i < sort_count; ++i) shm_toc_estimate_chunk(&context->estimator, sort_bytes);
    shm_toc_estimate_keys(&context->estimator, sort_count);
    InitializeParallelDSM(context);
    if (context->seg == nullptr) {
        leave_parallel(context, snapshot);
        return false;
    }
    if (!build->begun) begin_engine_build(build);
    SharedBuild* shared = make_shared(context, heap, index, info, build, snapshot, bytes);
    SharedSorts sorts = {nullptr, make_shared_sort(context, unplaced_sort_key, sort_bytes)};
    if (sort_count > 1) sorts.included = make_shared_sort(context, sort_key, sort_bytes);
    LaunchParallelWorkers(context);
    if (context->nworkers_launched == 0) {
        WaitForParallelWorkersToFinish(context);
        leave_parallel(context, snapshot);
        return false;
    }
    ereport(DEBUG1, (errmsg("using %d parallel workers", context->nworkers_launched)));
    collect_share(heap, index, info, shared, sorts, true);
    WaitForParallelWorkersToAttach(context);
    wait_for_participants(shared, context->nworkers_launched + 1);
    collected->heap_tuples = shared->heap_tuples;
    collected->placed = shared->placed;
    collected->norms = shared->norms;
    collected->included_totals = shared->included;
    if (shared->broken_hot_chain) info->ii_BrokenHotChain = true;
    WaitForParallelWorkersToFinish(context);
    take_unplaced(context, sorts.unplaced, build, collected);
    if (sorts.included != nullptr) {
        take_included(context, index, sorts.included, collected);
        if (IsMVCCSnapshot(snapshot)) UnregisterSnapshot(snapshot);
        return true;
    }
    leave_parallel(context, snapshot);
    return true;
}

}  // namespace pgwarp

// Main function of each worker.
void pgwarp_build_worker(dsm_segment* segment, shm_toc* toc)
{
    using namespace pgwarp;
    auto* shared = static_cast<SharedBuild*>(shm_toc_lookup(toc, parallel_shared_key, false));
    const LOCKMODE heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
    const LOCKMODE index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
    pgstat_report_activity(STATE_RUNNING, debug_query_string);
    Relation heap = table_open(shared->heap, heap_lock);
    Relation index = index_open(shared->index, index_lock);
    IndexInfo* info = BuildIndexInfo(index);
    info->ii_Concurrent = shared->concurrent;
    const SharedSorts sorts = {static_cast<Sharedsort*>(shm_toc_lookup(toc, sort_key, true)),
                               static_cast<Sharedsort*>(shm_toc_lookup(toc, unplaced_sort_key, false))};
    for (Sharedsort* sort : {sorts.included, sorts.unplaced}) {
        if (sort != nullptr) tuplesort_attach_shared(sort, segment);
    }
    collect_share(heap, index, info, shared, sorts, false);
    index_close(index, index_lock);
    table_close(heap, heap_lock);
}
