// The launcher: a background worker that spawns pgwarp-engine, restarts it with back-off and stops it with the server;
// and the slot in shared memory through which backends find or start it.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Called by _PG_init: with shared_preload_libraries, registers the static worker and asks for shared memory.
void init_launcher();

// Makes sure that a launcher runs (registering a dynamic worker if need be). False when that can't be: no worker slot,
// single-user mode. Doesn't wait for the engine's socket.
bool ensure_launcher();

}  // namespace pgwarp
