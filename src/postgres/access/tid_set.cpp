#include "postgres/access/tid_set.h"

namespace pgwarp
{

namespace
{

constexpr uint64 first_capacity = 256;

uint64 key_of(Tid tid)
{
    return ((static_cast<uint64>(tid.block) << 16) | tid.offset) + 1;
}

// The slot that holds the key, or the free one where it belongs.
uint64 find_slot(const TidSet* set, uint64 key)
{
    const uint64 mask = set->capacity - 1;
    uint64 slot = (key * UINT64CONST(0x9E3779B97F4A7C15)) >> 32 & mask;
    while (set->slots[slot] != 0 && set->slots[slot] != key) slot = (slot + 1) & mask;
    return slot;
}

// Double the slots.
void grow(TidSet* set)
{
    const uint64 old_capacity = set->capacity;
    uint64* old_slots = set->slots;
    set->capacity = old_capacity == 0 ? first_capacity : old_capacity * 2;
    set->slots = static_cast<uint64*>(
        MemoryContextAllocExtended(set->context, sizeof(uint64) * set->capacity, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    for (uint64 i = 0; i < old_capacity; ++i) {
        if (old_slots[i] != 0) set->slots[find_slot(set, old_slots[i])] = old_slots[i];
    }
    if (old_slots != nullptr) pfree(old_slots);
}

}  // namespace

void init_tid_set(TidSet* set, MemoryContext context)
{
    set->slots = nullptr;
    set->capacity = 0;
    set->count = 0;
    set->context = context;
}

bool add_tid(TidSet* set, Tid tid)
{
    if ((set->count + 1) * 4 > set->capacity * 3) grow(set);
    const uint64 key = key_of(tid);
    const uint64 slot = find_slot(set, key);
    if (set->slots[slot] == key) return false;
    set->slots[slot] = key;
    set->count += 1;
    return true;
}

bool has_tid(const TidSet* set, Tid tid)
{
    return set->capacity > 0 && set->slots[find_slot(set, key_of(tid))] != 0;
}

}  // namespace pgwarp
