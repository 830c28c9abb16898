// Which indexes have been loaded, in shared memory: when the engine starts again they are loaded without waiting for
// the first search. Large ones only: small ones load in no time.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Notes that the index was loaded, in place of the one used least recently when there are too many.
void remember_index(Relation index);
// Notes that it was searched; cheap enough for every search.
void note_index_use(Relation index);
void forget_index(Oid database, Oid index);

// For the launcher: has remembered indexes loaded by workers, one for each database. They wait for the engine.
void start_remembered_loads();
// For such a worker: indexes of its database, those used last first. Palloc'ed.
Oid* remembered_indexes(Oid database, int* count);

}  // namespace pgwarp
