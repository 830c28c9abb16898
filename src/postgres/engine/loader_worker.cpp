#include "postgres/engine/loader_worker.h"

#include "postgres/access/methods.h"
#include "postgres/engine/index_state.h"
#include "postgres/engine/launcher.h"
#include "postgres/engine/mirror_load.h"

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

constexpr uint64 worth_a_worker = 8U << 20;  // bytes; less is loaded before a process has started

// What the worker is told, in bgw_extra.
struct LoaderTask {
    Oid database;
    Oid index;
    uint64 generation;
};
static_assert(sizeof(LoaderTask) <= BGW_EXTRALEN);

// Whether the index was made by this transaction, so that others do not see it.
bool is_of_this_transaction(Relation index)
{
#if PG_VERSION_NUM >= 160000
    const SubTransactionId storage = index->rd_newRelfilelocatorSubid;
#else
    const SubTransactionId storage = index->rd_newRelfilenodeSubid;
#endif
    return index->rd_createSubid != InvalidSubTransactionId || storage != InvalidSubTransactionId;
}

// The index, locked without waiting: who waits for us may hold up whom we would wait for. Null: leave it.
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
        IndexState state = read_index_state(index);
        if (state.meta.generation == task.generation) {
            state.directory = copy_directory(*state.directory, CurrentMemoryContext);
            open_engine();
            load_mirror_here(index, state, 0);
        }
        relation_close(index, NoLock);
    }
    CommitTransactionCommand();
}

}  // namespace

bool worker_may_load(Relation index, const Directory& directory)
{
    if (!IsUnderPostmaster || RelationUsesLocalBuffers(index) || is_of_this_transaction(index)) return false;
    uint64 bytes = 0;
    for (uint32 i = 0; i < directory.array_count; ++i) bytes += directory.arrays[i].shape.bytes();
    return bytes >= worth_a_worker;
}

BackgroundWorkerHandle* start_loader_worker(Relation index, uint64 generation)
{
    BackgroundWorker worker = describe_worker("pgwarp loader", "pgwarp_loader_main");
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_notify_pid = MyProcPid;
    const LoaderTask task = {MyDatabaseId, RelationGetRelid(index), generation};
    memcpy(worker.bgw_extra, &task, sizeof(task));
    BackgroundWorkerHandle* handle = nullptr;
    return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

bool loader_worker_ended(BackgroundWorkerHandle* worker)
{
    pid_t pid;
    const BgwHandleStatus status = GetBackgroundWorkerPid(worker, &pid);
    return status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED;
}

}  // namespace pgwarp

// Load one index into the engine.
void pgwarp_loader_main(Datum)
{
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    pgwarp::LoaderTask task;
    memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
    BackgroundWorkerInitializeConnectionByOid(task.database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
    pgwarp::load(task);
    proc_exit(0);
}
