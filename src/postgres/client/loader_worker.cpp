#include "postgres/client/loader_worker.h"

#include "postgres/client/worker.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 worth_a_worker = 8U << 20;  // bytes; a smaller index is loaded before a process has started

// Whether this transaction created the index or its storage: other sessions do not see it then.
bool is_of_this_transaction(Relation index)
{
#if PG_VERSION_NUM >= 160000
    const SubTransactionId storage = index->rd_newRelfilelocatorSubid;
#else
    const SubTransactionId storage = index->rd_newRelfilenodeSubid;
#endif
    return index->rd_createSubid != InvalidSubTransactionId || storage != InvalidSubTransactionId;
}

BackgroundWorkerHandle* start_worker(const char* name, const LoaderTask& task, pid_t notified)
{
    BackgroundWorker worker = describe_worker(name, "pgwarp_loader_main");
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_notify_pid = notified;
    memcpy(worker.bgw_extra, &task, sizeof(task));
    BackgroundWorkerHandle* handle = nullptr;
    return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

}  // namespace

bool is_open_to_workers(Relation index)
{
    return IsUnderPostmaster && !RelationUsesLocalBuffers(index) && !is_of_this_transaction(index);
}

bool worker_may_load(Relation index, const Directory& directory)
{
    if (!is_open_to_workers(index)) return false;
    uint64 bytes = 0;
    for (uint32 i = 0; i < directory.array_count; ++i) bytes += directory.arrays[i].shape.bytes();
    return bytes >= worth_a_worker;
}

BackgroundWorkerHandle* start_loader_worker(Relation index, uint64 generation)
{
    return start_worker("pgwarp loader", {MyDatabaseId, RelationGetRelid(index), generation, DSM_HANDLE_INVALID},
                        MyProcPid);
}

bool start_load_helper(Relation index, uint64 generation, dsm_handle team)
{
    return start_worker("pgwarp load helper", {MyDatabaseId, RelationGetRelid(index), generation, team}, 0) != nullptr;
}

bool start_remembered_loader(Oid database)
{
    return start_worker("pgwarp loader", {database, InvalidOid, 0, DSM_HANDLE_INVALID}, 0) != nullptr;
}

bool loader_worker_ended(BackgroundWorkerHandle* worker)
{
    pid_t pid;
    const BgwHandleStatus status = GetBackgroundWorkerPid(worker, &pid);
    return status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED;
}

}  // namespace pgwarp
