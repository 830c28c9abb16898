// From the tids of an index to those of the rows that a snapshot sees. An index names the first tuple of a HOT chain;
// who wants to join the table on ctid needs the tuple of the chain that is visible.
#pragma once

#include "postgres/access/heap_distance.h"

namespace pgwarp
{

// Remembers what was looked up, within work_mem: under one snapshot the answer never changes.
struct VisibleRows {
    HeapReader* reader;
    uint64* slots;  // (block << 16 | offset) << 16 | offset of the visible tuple, 0 when there is none; 0 = free
    uint64 mask;
    bool prefetches;  // effective_io_concurrency allows it
};

// expected: lookups, for sizing only. Allocated in the current memory context.
VisibleRows* make_visible_rows(HeapReader* reader, uint64 expected);

// Has the page of an entry that will be looked up soon read, or brought near where it is in memory.
void prefetch_row(const VisibleRows* rows, Tid entry);

// The visible row that an entry of the index stands for; false when there is none.
bool find_visible_row(VisibleRows* rows, Tid entry, Tid* visible);

// The same with the row's vector, valid until the next call; null when there is none.
const float* fetch_visible_vector(VisibleRows* rows, Tid entry, uint32 dimensions, Tid* visible);

}  // namespace pgwarp
