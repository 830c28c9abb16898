// Rows that are held back, in order of distance: a heap with the nearest on top.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

extern "C" {
#include "executor/tuptable.h"
}

namespace pgwarp
{

struct HeldRow {
    MinimalTuple tuple;
    ItemPointerData address;  // of the tuple
    Tid tid;                  // as the index has it
    double distance;
    uint64 number;  // rows as far come in the order in which they were put in
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
// Takes the nearest one out; its tuple is the caller's to free.
HeldRow take_nearest(HeldRows* held);
// Puts the heap in order after distances were changed.
void reorder_held(HeldRows* held);
// How many are no farther than that.
uint32 count_within(const HeldRows& held, double distance);
// Forgets all of them.
void drop_held(HeldRows* held);

}  // namespace pgwarp
