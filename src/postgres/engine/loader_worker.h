// Loads of large indexes run in a background worker: what is loaded stays when the query that needed it is cancelled.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "postmaster/bgworker.h"
}

#include "postgres/storage/directory.h"

namespace pgwarp
{

// Whether another process can read the index, and it is large enough to be worth a process.
bool worker_may_load(Relation index, const Directory& directory);

// Starts a worker that loads this generation of the index and ends. Null when no worker slot is free.
BackgroundWorkerHandle* start_loader_worker(Relation index, uint64 generation);

bool loader_worker_ended(BackgroundWorkerHandle* worker);

}  // namespace pgwarp
