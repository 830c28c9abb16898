// Large indexes are loaded by a background worker, so that the mirror stays when the query that needed it is cancelled.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
}

#include "postgres/storage/directory.h"

namespace pgwarp
{

// The worker's task, in bgw_extra.
struct LoaderTask {
    Oid database;
    Oid index;  // InvalidOid: all remembered indexes of the database
    uint64 generation;
    dsm_handle team;  // the team to help; DSM_HANDLE_INVALID: none
};
static_assert(sizeof(LoaderTask) <= BGW_EXTRALEN);

// Whether another process can read the index.
bool is_open_to_workers(Relation index);
// Whether another process can read the index, and the index is large enough to justify a process.
bool worker_may_load(Relation index, const Directory& directory);

// Starts a worker that loads this generation of the index and ends. Null when no worker slot is free.
BackgroundWorkerHandle* start_loader_worker(Relation index, uint64 generation);

// Starts a worker that helps a team to load this generation of the index. False when no worker slot is free.
bool start_load_helper(Relation index, uint64 generation, dsm_handle team);

// Starts a worker that loads the remembered indexes of the database.
bool start_remembered_loader(Oid database);

// Whether the worker has ended, or the postmaster has died.
bool loader_worker_ended(BackgroundWorkerHandle* worker);

}  // namespace pgwarp
