#include "postgres/maintenance/merge_worker.h"

#include "postgres/access/methods.h"
#include "postgres/engine/launcher.h"
#include "postgres/engine/loader.h"
#include "postgres/engine/loader_worker.h"
#include "postgres/engine/shared_slot.h"
#include "postgres/maintenance/merge.h"
#include "postgres/settings.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"

PGDLLEXPORT void pgwarp_merge_main(Datum argument);
}

namespace pgwarp
{

namespace
{

constexpr int64 pause_us = 5 * USECS_PER_SEC;  // between two workers

// What the worker is told, in bgw_extra.
struct MergeTask {
    Oid database;
    Oid index;
};
static_assert(sizeof(MergeTask) <= BGW_EXTRALEN);

// Whether this session may start a worker now. Then no other may for a while.
bool claim_worker()
{
    SharedSlot* shared = shared_slot();
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    const bool claim = shared->merging_pid == 0 && now - shared->merge_started_at > pause_us;
    if (claim) shared->merge_started_at = now;
    SpinLockRelease(&shared->mutex);
    return claim;
}

void note_worker(pid_t pid)
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    shared->merging_pid = pid;
    shared->merge_started_at = GetCurrentTimestamp();
    SpinLockRelease(&shared->mutex);
}

void leave_worker(int, Datum)
{
    note_worker(0);
}

// The table, locked as VACUUM locks it; InvalidOid when somebody else has it, or it is gone.
Oid lock_table(Oid index)
{
    const Oid table = IndexGetRelation(index, true);
    if (!OidIsValid(table) || !ConditionalLockRelationOid(table, ShareUpdateExclusiveLock)) return InvalidOid;
    return IndexGetRelation(index, true) == table ? table : InvalidOid;
}

// Merge one index, if it is one of ours and needs it.
void merge_one(Oid oid)
{
    Relation index = try_relation_open(oid, RowExclusiveLock);
    if (index == nullptr) return;
    if (index->rd_rel->relkind == RELKIND_INDEX && find_access_method(index->rd_indam->amoptions) != nullptr &&
        index->rd_index->indisready) {
        pgstat_report_activity(STATE_RUNNING, psprintf("pgwarp merge of index %s", RelationGetRelationName(index)));
        merge_throttled(index, MergeReason::vacuum);
    }
    relation_close(index, NoLock);
}

// Merge the table's indexes: the rows that made one of them slow are in the others too.
void merge_indexes(const MergeTask& task)
{
    StartTransactionCommand();
    const Oid oid = lock_table(task.index);
    if (OidIsValid(oid)) {
        Relation table = table_open(oid, NoLock);
        List* indexes = RelationGetIndexList(table);
        ListCell* cell;
        foreach (cell, indexes) merge_one(lfirst_oid(cell));
        table_close(table, NoLock);
    }
    CommitTransactionCommand();
    pgstat_report_activity(STATE_IDLE, nullptr);
}

}  // namespace

void consider_merge(Relation index)
{
    // Who wants no autovacuum doesn't want this.
    if (!setting_merge_worker || !AutoVacuumingActive() || !IsUnderPostmaster || IsParallelWorker()) return;
    if (!is_open_to_workers(index)) return;
    const IndexState state = read_index_state(index);
    uint64 entries = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) entries += state.delta_end[log] - state.meta.logs[log].start;
    if (!logs_cost_too_much(access_method_of(index), *state.directory, entries) || !claim_worker()) return;
    BackgroundWorker worker = describe_worker("pgwarp merge", "pgwarp_merge_main");
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    const MergeTask task = {MyDatabaseId, RelationGetRelid(index)};
    memcpy(worker.bgw_extra, &task, sizeof(task));
    RegisterDynamicBackgroundWorker(&worker, nullptr);
}

}  // namespace pgwarp

// Merge the indexes of one table, and end.
void pgwarp_merge_main(Datum)
{
    using namespace pgwarp;
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    MergeTask task;
    memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
    note_worker(MyProcPid);
    before_shmem_exit(leave_worker, static_cast<Datum>(0));
    BackgroundWorkerInitializeConnectionByOid(task.database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
    merge_indexes(task);
    proc_exit(0);
}
