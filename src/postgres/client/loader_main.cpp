// The main function of workers that load indexes (loader_worker.h).
#include "postgres/am/methods.h"
#include "postgres/client/connection.h"
#include "postgres/client/index_state.h"
#include "postgres/client/loader_worker.h"
#include "postgres/client/mirror_load.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/settings.h"

extern "C" {
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"

PGDLLEXPORT void pgwarp_loader_main(Datum argument);
}

namespace pgwarp
{

namespace
{

// Open the index, locked without waiting: a session that waits for this load may hold the lock. Null: locked, dropped,
// or not a pgwarp index.
Relation open_if_free(Oid oid)
{
    if (!ConditionalLockRelationOid(oid, AccessShareLock)) return nullptr;
    Relation index = try_relation_open(oid, NoLock);
    if (index == nullptr || index->rd_rel->relkind != RELKIND_INDEX) return nullptr;
    return find_access_method(index->rd_indam->amoptions) != nullptr ? index : nullptr;
}

void load(const LoaderTask& task)
{
    StartTransactionCommand();
    if (Relation index = open_if_free(task.index)) {
        const DirectoryState state = read_directory_state(index);
        if (state.meta.generation == task.generation) {
            open_engine();
            load_mirror_here(index, state, 0);
        }
        relation_close(index, NoLock);
    }
    CommitTransactionCommand();
}

void help(const LoaderTask& task)
{
    StartTransactionCommand();
    Relation index = open_if_free(task.index);
    LoadTeam* team = index != nullptr ? join_load_team(task.team) : nullptr;
    if (team != nullptr) {
        const DirectoryState state = read_directory_state(index);
        if (state.meta.generation == task.generation) {
            open_engine();
            help_to_load(index, state, team);
        }
    }
    leave_load_team();
    if (index != nullptr) relation_close(index, NoLock);
    CommitTransactionCommand();
}

// Load one index that was loaded before. If it is small or dropped now, it is forgotten. Returns false when the engine
// is gone again.
bool load_again(Oid oid)
{
    LoadOutcome outcome = LoadOutcome::done;
    StartTransactionCommand();
    Relation index = open_if_free(oid);
    if (index == nullptr) {
        forget_index(MyDatabaseId, oid);
    } else {
        const DirectoryState state = read_directory_state(index);
        if (worker_may_load(index, *state.directory)) {
            open_engine();
            outcome = load_mirror_here(index, state, static_cast<uint32>(setting_load_wait_ms));
        } else {
            forget_index(MyDatabaseId, oid);
        }
        relation_close(index, NoLock);
    }
    CommitTransactionCommand();
    return outcome != LoadOutcome::unsent && outcome != LoadOutcome::lost;
}

// The same; returns false also when the engine's memory is full: the remaining indexes are then loaded by their
// searches. A damaged index is reported in the log and does not keep the others from being loaded.
bool try_load_again(Oid oid)
{
    MemoryContext outer = CurrentMemoryContext;
    volatile bool goes_on = true;
    PG_TRY();
    {
        goes_on = load_again(oid);
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(outer);
        ErrorData* error = CopyErrorData();
        goes_on = error->sqlerrcode == ERRCODE_INDEX_CORRUPTED;
        FreeErrorData(error);
        // Only log the error: it belongs to no statement.
        HOLD_INTERRUPTS();
        EmitErrorReport();
        FlushErrorState();
        AbortCurrentTransaction();
        RESUME_INTERRUPTS();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(outer);
    return goes_on;
}

void load_remembered()
{
    int count = 0;
    const Oid* indexes = remembered_indexes(MyDatabaseId, &count);
    for (int i = 0; i < count && try_load_again(indexes[i]); ++i) CHECK_FOR_INTERRUPTS();
}

}  // namespace

}  // namespace pgwarp

// Load one index into the engine, help a team to load one, or load the remembered indexes of the database.
void pgwarp_loader_main(Datum)
{
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    pgwarp::LoaderTask task;
    memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
    BackgroundWorkerInitializeConnectionByOid(task.database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
    if (task.team != DSM_HANDLE_INVALID) {
        pgwarp::help(task);
    } else if (task.index != InvalidOid) {
        pgwarp::load(task);
    } else {
        pgwarp::load_remembered();
    }
    proc_exit(0);
}
