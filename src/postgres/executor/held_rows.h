// Rows that a node holds back, in order of distance: a heap with the nearest row on top.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

extern "C" {
#include "executor/tuptable.h"
}

namespace pgwarp
{

// One held row; its tuple lies in HeldRows::context.
struct HeldRow {
    MinimalTuple tuple;
    ItemPointerData address;  // of the tuple
    Tid tid;                  // from the index
    double distance;
    uint64 number;  // rows of equal distance leave in the order of their insertion
};

struct HeldRows {
    MemoryContext context;
    HeldRow* rows;
    uint32 count;
    uint32 capacity;
    uint64 numbered;
    Size bytes;
};

// Copies the slot's row.
void hold_row(HeldRows* held, TupleTableSlot* slot, ItemPointer address, Tid tid, double distance);
// Removes the nearest row; the caller frees its tuple.
HeldRow take_nearest(HeldRows* held);
// Restores the heap's order after distances were changed.
void reorder_held(HeldRows* held);
// Returns the number of rows at most `distance` away.
uint32 count_within(const HeldRows& held, double distance);
// Frees all rows.
void drop_held(HeldRows* held);

}  // namespace pgwarp
