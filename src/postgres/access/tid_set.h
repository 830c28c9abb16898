// A set of heap addresses: open addressing in palloc'ed memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

struct TidSet {
    uint64* slots;  // 0 = free; tids are kept as (block << 16 | offset) + 1
    uint64 capacity;
    uint64 count;
    MemoryContext context;
};

// An empty set that takes its memory from `context`.
void init_tid_set(TidSet* set, MemoryContext context);
// Adds a tid; false when it was there already.
bool add_tid(TidSet* set, Tid tid);
bool has_tid(const TidSet* set, Tid tid);

}  // namespace pgwarp
