// A set of heap addresses: a hash table with open addressing in palloc'ed memory, and beyond a limit a temporary file.
#pragma once

#include "postgres/build/tid_file.h"

namespace pgwarp
{

struct TidSet {
    uint64* slots;  // 0 = free; tids are kept as (block << 16 | offset) + 1
    uint64 capacity;
    uint64 in_memory;  // tids in `slots`
    uint64 count;
    MemoryContext context;
    Size most_bytes;
    ResourceOwner owner;  // of the file
    TidFile* file;        // null while the slots hold the set
};

// An empty set that takes its memory from `context`, about `most_bytes` at most.
void init_tid_set(TidSet* set, MemoryContext context, Size most_bytes);
// Adds a tid; false when it was there already.
bool add_tid(TidSet* set, Tid tid);
bool has_tid(const TidSet* set, Tid tid);
// Closes the file, before the context is reset; the set is empty then. After an error the file's owner closes it.
void free_tid_set(TidSet* set);

}  // namespace pgwarp
