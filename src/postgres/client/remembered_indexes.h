// The large indexes that have been loaded, in shared memory: when the engine starts again they are loaded without
// waiting for the first search. Small indexes are left out, because loading them takes little time.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Notes that the index was loaded. When the table is full, it replaces the least recently used index.
void remember_index(Relation index);
// Notes that the index was searched; cheap enough for every search.
void note_index_use(Relation index);
// Removes the index from the remembered ones; no effect if it is absent.
void forget_index(Oid database, Oid index);

// For the launcher: starts a worker for each database with remembered indexes; the workers wait for the engine and load
// them.
void start_remembered_loads();
// For such a worker: returns the remembered indexes of its database, most recently used first. Palloc'ed.
Oid* remembered_indexes(Oid database, int* count);

}  // namespace pgwarp
