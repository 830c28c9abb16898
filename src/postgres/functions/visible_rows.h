// From the tids of an index to those of the rows that a snapshot sees. An index names the first tuple of a HOT chain;
// a join with the table on ctid needs the tuple of the chain that is visible.
#pragma once

#include "postgres/scan/heap_distance.h"

namespace pgwarp
{

// Remembers rows that were looked up, within work_mem: under one snapshot the answer never changes.
struct VisibleRows {
    HeapReader* reader;
    uint64* slots;  // (block << 16 | offset) << 16 | offset of the visible tuple, 0 when there is none; 0 = free
    uint64 mask;
};

// expected: lookups, for sizing only. Allocated in the current memory context.
VisibleRows* make_visible_rows(HeapReader* reader, uint64 expected);

// Whether the row of an entry was looked up before, and is remembered.
bool knows_row(const VisibleRows* rows, Tid entry);

// The visible row that an entry of the index stands for; false when there is none.
bool find_visible_row(VisibleRows* rows, Tid entry, Tid* visible);

// The same with the row's vector, valid until the next call; null when there is none. Nothing is remembered.
const float* fetch_visible_vector(VisibleRows* rows, Tid entry, uint32 dimensions, Tid* visible);

}  // namespace pgwarp
