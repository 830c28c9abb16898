// Maps tids of an index to tids of the rows that a snapshot sees. An index refers to the first tuple of a HOT chain; a
// join with the table on ctid needs the chain's visible tuple.
#pragma once

#include "postgres/scan/heap_distance.h"

namespace pgwarp
{

// Caches lookups within work_mem: under one snapshot the answer never changes.
struct VisibleRows {
    HeapReader* reader;
    uint64* slots;  // (block << 16 | offset) << 16 | offset of the visible tuple, 0 if none is visible; 0 = free
    uint64 mask;
};

// Makes the cache in the current memory context. expected: number of lookups, for sizing only.
VisibleRows* make_visible_rows(HeapReader* reader, uint64 expected);

// Whether the row of an index entry is in the cache.
bool knows_row(const VisibleRows* rows, Tid entry);

// Finds the visible row of an index entry; false when there is none.
bool find_visible_row(VisibleRows* rows, Tid entry, Tid* visible);

// The same with the row's vector, valid until the next call; null when no row is visible. The result is not cached.
const float* fetch_visible_vector(VisibleRows* rows, Tid entry, uint32 dimensions, Tid* visible);

}  // namespace pgwarp
