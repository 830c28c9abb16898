#include "postgres/executor/held_rows.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr uint32 first_capacity = 64;

bool is_farther(const HeldRow& left, const HeldRow& right)
{
    return left.distance != right.distance ? left.distance > right.distance : left.number > right.number;
}

void make_room(HeldRows* held)
{
    if (held->count < held->capacity) return;
    const uint32 capacity = held->capacity == 0 ? first_capacity : held->capacity * 2;
    const Size bytes = sizeof(HeldRow) * capacity;
    held->rows = static_cast<HeldRow*>(held->rows == nullptr ? MemoryContextAllocHuge(held->context, bytes)
                                                             : repalloc_huge(held->rows, bytes));
    held->capacity = capacity;
}

}  // namespace

void hold_row(HeldRows* held, TupleTableSlot* slot, ItemPointer address, Tid tid, double distance)
{
    make_room(held);
    MemoryContext outer = MemoryContextSwitchTo(held->context);
    MinimalTuple tuple = ExecCopySlotMinimalTuple(slot);
    MemoryContextSwitchTo(outer);
    held->bytes += tuple->t_len;
    held->rows[held->count++] = {tuple, *address, tid, distance, held->numbered++};
    std::push_heap(held->rows, held->rows + held->count, is_farther);
}

HeldRow take_nearest(HeldRows* held)
{
    std::pop_heap(held->rows, held->rows + held->count, is_farther);
    const HeldRow row = held->rows[--held->count];
    held->bytes -= row.tuple->t_len;
    return row;
}

void reorder_held(HeldRows* held)
{
    std::make_heap(held->rows, held->rows + held->count, is_farther);
}

uint32 count_within(const HeldRows& held, double distance)
{
    uint32 within = 0;
    for (uint32 i = 0; i < held.count; ++i) within += held.rows[i].distance <= distance ? 1 : 0;
    return within;
}

void drop_held(HeldRows* held)
{
    MemoryContextReset(held->context);
    held->rows = nullptr;
    held->count = 0;
    held->capacity = 0;
    held->bytes = 0;
}

}  // namespace pgwarp
