// The launcher: a background worker that starts pgwarp-engine, restarts it with back-off and stops it with the server.
// The launcher's slot in shared memory lets backends find it or register one.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Called by _PG_init: with shared_preload_libraries, registers the static worker and asks for shared memory.
void init_launcher();

// Makes sure that a launcher runs, registering a dynamic worker if need be. False when that is impossible: no worker
// slot, single-user mode. Does not wait for the engine's socket.
bool ensure_launcher();

}  // namespace pgwarp
