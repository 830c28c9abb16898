// Which indexes have been loaded, in shared memory: when the engine starts again they are loaded without waiting for
// the first search. Large ones only; what is small is loaded in no time.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
}

namespace pgwarp
{

struct RememberedIndex {
    Oid database;  // InvalidOid = a free entry
    Oid index;
    int32 attempts;  // to load it at a start of the engine, since it was last loaded
    TimestampTz used_at;
};

inline constexpr int remembered_capacity = 128;

// Notes that the index was loaded, in place of the one used least recently when there are too many.
void remember_index(Relation index);
// Notes that it was searched; cheap enough for every search.
void note_index_use(Relation index);
void forget_index(Oid database, Oid index);

// For the launcher: has what is remembered loaded by workers, one for each database. They wait for the engine.
void start_remembered_loads();
// For such a worker: indexes of its database, those used last first. Returns how many.
int remembered_indexes(Oid database, Oid* indexes);

}  // namespace pgwarp
