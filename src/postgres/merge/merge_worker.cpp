// The background worker, and the shared notes that limit the number of its runs.
#include "postgres/merge/merge_worker.h"

#include "postgres/am/methods.h"
#include "postgres/client/loader_worker.h"
#include "postgres/client/shared_slot.h"
#include "postgres/client/worker.h"
#include "postgres/merge/merge.h"
#include "postgres/settings.h"

extern "C" {
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

PGDLLEXPORT void pgwarp_merge_main(Datum argument);
}

namespace pgwarp
{

namespace
{

constexpr int64 shortest_rest_us = 5 * USECS_PER_SEC;  // between two workers, at least
constexpr int64 leave_alone_us = 300 * USECS_PER_SEC;  // pause for a table without autovacuum or whose merge failed

// Even few delta rows make searches slower, but merges take memory bandwidth from searches. Therefore an index with few
// delta rows is merged again only after a pause of small_patience times the duration of its last merge.
constexpr int64 small_patience = 4;
constexpr uint64 small_part = 16;  // of the index's rows: fewer delta rows are few

// The worker's task, passed in bgw_extra.
struct MergeTask {
    Oid database;
    Oid index;
};
static_assert(sizeof(MergeTask) <= BGW_EXTRALEN);

// The note of an index's last merge; null when there is none. The caller holds the spinlock.
MergeNote* find_note(SharedSlot* shared, Oid index)
{
    for (MergeNote& note : shared->merges) {
        if (note.index == index && note.database == MyDatabaseId) return &note;
    }
    return nullptr;
}

void note_merge(Oid index, TimestampTz began)
{
    SharedSlot* shared = shared_slot();
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    MergeNote* note = find_note(shared, index);
    if (note == nullptr) {
        note = &shared->merges[shared->next_merge];
        shared->next_merge = (shared->next_merge + 1) % merge_note_capacity;
    }
    *note = {MyDatabaseId, index, now + small_patience * (now - began)};
    SpinLockRelease(&shared->mutex);
}

// Whether this session may start a worker for an index now. If so, no other session may for a while.
bool claim_worker(Relation index, bool small)
{
    SharedSlot* shared = shared_slot();
    const Oid table = index->rd_index->indrelid;
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    const bool left = shared->left_database == MyDatabaseId && shared->left_table == table && now < shared->left_until;
    const MergeNote* note = find_note(shared, RelationGetRelid(index));
    const bool early = small && note != nullptr && now < note->no_small_merge_before;
    const bool claim = shared->merging_pid == 0 && now >= shared->no_merge_before && !left && !early;
    if (claim) shared->no_merge_before = now + shortest_rest_us;
    SpinLockRelease(&shared->mutex);
    return claim;
}

TimestampTz worker_began_at = 0;

void note_begin()
{
    SharedSlot* shared = shared_slot();
    worker_began_at = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    shared->merging_pid = MyProcPid;
    SpinLockRelease(&shared->mutex);
}

// Workers rest for as long as they ran, because autovacuum skips a table that a worker has locked.
void note_end(int, Datum)
{
    SharedSlot* shared = shared_slot();
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    shared->merging_pid = 0;
    shared->no_merge_before = now + Max(shortest_rest_us, now - worker_began_at);
    SpinLockRelease(&shared->mutex);
}

// Start no worker for this table for a while.
void leave_alone(Oid table)
{
    SharedSlot* shared = shared_slot();
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&shared->mutex);
    shared->left_database = MyDatabaseId;
    shared->left_table = table;
    shared->left_until = now + leave_alone_us;
    SpinLockRelease(&shared->mutex);
}

// Look like an autovacuum worker to sessions that wait for a lock of this process: they cancel it after
// deadlock_timeout, and DROP DATABASE terminates it.
void give_way_as_autovacuum()
{
    LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
    MyProc->statusFlags |= PROC_IS_AUTOVACUUM;
    ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
    LWLockRelease(ProcArrayLock);
}

// Lock the table of an index as VACUUM locks it; InvalidOid when another session has it, or it is gone.
Oid lock_table(Oid index)
{
    const Oid table = IndexGetRelation(index, true);
    if (!OidIsValid(table) || !ConditionalLockRelationOid(table, ShareUpdateExclusiveLock)) return InvalidOid;
    return IndexGetRelation(index, true) == table ? table : InvalidOid;
}

// Merge one index, if it is a pgwarp index and needs a merge.
void merge_one(Oid oid)
{
    Relation index = try_relation_open(oid, RowExclusiveLock);
    if (index == nullptr) return;
    if (index->rd_rel->relkind == RELKIND_INDEX && find_access_method(index->rd_indam->amoptions) != nullptr &&
        index->rd_index->indisready) {
        pgstat_report_activity(STATE_RUNNING, psprintf("pgwarp merge of index %s", RelationGetRelationName(index)));
        const TimestampTz began = GetCurrentTimestamp();
        merge_throttled(index, MergeReason::vacuum);
        note_merge(oid, began);
    }
    relation_close(index, NoLock);
}

// Report the error of a merge. The other indexes of the table are merged nevertheless.
void report_failure(const MergeTask& task, Oid index)
{
    const bool cancelled = geterrcode() == ERRCODE_QUERY_CANCELED;
    if (!cancelled) EmitErrorReport();
    FlushErrorState();
    AbortCurrentTransaction();
    StartTransactionCommand();
    const char* name = get_rel_name(index);
    if (cancelled) {
        ereport(LOG, (errmsg("the merge of index \"%s\" is left for later: another session waits for its table",
                             name != nullptr ? name : "")));
    } else {
        leave_alone(IndexGetRelation(task.index, true));
    }
    CommitTransactionCommand();
}

// Merge one of the table's indexes in a transaction of its own, so that others can lock the table in between. False
// when the table cannot be locked.
bool merge_in_transaction(const MergeTask& task, Oid index)
{
    volatile bool locked = false;
    StartTransactionCommand();
    PG_TRY();
    {
        locked = OidIsValid(lock_table(task.index));
        if (locked) merge_one(index);
        CommitTransactionCommand();
    }
    PG_CATCH();
    {
        report_failure(task, index);
    }
    PG_END_TRY();
    pgstat_report_activity(STATE_IDLE, nullptr);
    return locked;
}

// Whether the table's own settings disable autovacuum.
bool wants_no_autovacuum(Relation table)
{
    const auto* options = reinterpret_cast<const StdRdOptions*>(table->rd_options);
    return options != nullptr && !options->autovacuum.enabled;
}

// The indexes of the table, in memory that outlives transactions; none when the table cannot be locked or its settings
// disable autovacuum.
List* indexes_of_table(const MergeTask& task)
{
    List* indexes = NIL;
    StartTransactionCommand();
    const Oid oid = lock_table(task.index);
    if (OidIsValid(oid)) {
        Relation table = table_open(oid, NoLock);
        MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
        if (!wants_no_autovacuum(table)) indexes = list_copy(RelationGetIndexList(table));
        MemoryContextSwitchTo(outer);
        if (indexes == NIL) leave_alone(oid);
        table_close(table, NoLock);
    }
    CommitTransactionCommand();
    return indexes;
}

// Merge all indexes of the table, since each has received the rows that made one of them slow.
void merge_indexes(const MergeTask& task)
{
    ListCell* cell;
    List* indexes = indexes_of_table(task);
    foreach (cell, indexes) {
        if (!merge_in_transaction(task, lfirst_oid(cell))) break;
    }
}

}  // namespace

void consider_merge(Relation index, const IndexState& state)
{
    uint64 entries = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) entries += state.delta_end[log] - state.meta.logs[log].start;
    if (!logs_cost_too_much(index, state.meta, state.rows, state.options, entries)) return;
    // Disabling autovacuum disables these workers too.
    if (!setting_merge_worker || !AutoVacuumingActive() || !IsUnderPostmaster || IsParallelWorker()) return;
    const bool small = entries < state.rows / small_part;
    if (RecoveryInProgress() || !is_open_to_workers(index) || !claim_worker(index, small)) return;
    BackgroundWorker worker = describe_worker("pgwarp merge", "pgwarp_merge_main");
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    const MergeTask task = {MyDatabaseId, RelationGetRelid(index)};
    memcpy(worker.bgw_extra, &task, sizeof(task));
    RegisterDynamicBackgroundWorker(&worker, nullptr);
}

}  // namespace pgwarp

// Main function of the worker: merges the indexes of one table, and ends.
void pgwarp_merge_main(Datum)
{
    using namespace pgwarp;
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    MergeTask task;
    memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
    note_begin();
    before_shmem_exit(note_end, static_cast<Datum>(0));
    BackgroundWorkerInitializeConnectionByOid(task.database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
    give_way_as_autovacuum();
    merge_indexes(task);
    proc_exit(0);
}
