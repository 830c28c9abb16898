// The hash table of the set, and its move into the file.
#include "postgres/am/tid_set.h"

extern "C" {
#include "utils/resowner.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 first_capacity = 256;

uint64 key_of(Tid tid)
{
    return ((static_cast<uint64>(tid.block) << 16) | tid.offset) + 1;
}

Tid tid_of(uint64 key)
{
    return {static_cast<uint32>((key - 1) >> 16), static_cast<uint16>(key - 1), 0};
}

// The file's bitmap has no bits for offsets that only other table access methods use: such tids stay in memory.
bool fits_file(Tid tid)
{
    return tid.offset >= FirstOffsetNumber && tid.offset <= tid_file_offsets;
}

// The slot that holds the key, or the free one where it belongs.
uint64 find_slot(const TidSet* set, uint64 key)
{
    const uint64 mask = set->capacity - 1;
    uint64 slot = (key * UINT64CONST(0x9E3779B97F4A7C15)) >> 32 & mask;
    while (set->slots[slot] != 0 && set->slots[slot] != key) slot = (slot + 1) & mask;
    return slot;
}

void make_slots(TidSet* set, uint64 capacity)
{
    set->capacity = capacity;
    set->in_memory = 0;
    set->slots = static_cast<uint64*>(
        MemoryContextAllocExtended(set->context, sizeof(uint64) * capacity, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
}

// Adds a key to the slots, which have room for it; false when it was there already.
bool add_key(TidSet* set, uint64 key)
{
    const uint64 slot = find_slot(set, key);
    if (set->slots[slot] == key) return false;
    set->slots[slot] = key;
    set->in_memory++;
    return true;
}

// Moves the keys of the old slots into the file if it can hold them, else into the new slots.
void move_keys(TidSet* set, uint64* old_slots, uint64 old_capacity)
{
    for (uint64 i = 0; i < old_capacity; ++i) {
        const uint64 key = old_slots[i];
        if (key == 0) continue;
        if (set->file != nullptr && fits_file(tid_of(key))) {
            add_to_tid_file(set->file, tid_of(key));
        } else {
            add_key(set, key);
        }
    }
}

// Doubles the slots, or begins a file when the old and the new slots together would exceed the limit.
void grow(TidSet* set)
{
    const uint64 old_capacity = set->capacity;
    uint64* old_slots = set->slots;
    const uint64 wanted = old_capacity == 0 ? first_capacity : old_capacity * 2;
    const bool too_large = sizeof(uint64) * (wanted + old_capacity) > set->most_bytes;
    if (too_large && set->file == nullptr && old_capacity > 0) {
        MemoryContext outer = MemoryContextSwitchTo(set->context);
        set->file = create_tid_file(set->owner, set->most_bytes / 2);
        MemoryContextSwitchTo(outer);
        make_slots(set, first_capacity);
    } else {
        make_slots(set, wanted);
    }
    move_keys(set, old_slots, old_capacity);
    if (old_slots != nullptr) pfree(old_slots);
}

}  // namespace

void init_tid_set(TidSet* set, MemoryContext context, Size most_bytes)
{
    *set = {};
    set->context = context;
    set->most_bytes = most_bytes;
    set->owner = CurrentResourceOwner;
}

bool add_tid(TidSet* set, Tid tid)
{
    if ((set->in_memory + 1) * 4 > set->capacity * 3) grow(set);
    const bool in_file = set->file != nullptr && fits_file(tid);
    const bool added = in_file ? add_to_tid_file(set->file, tid) : add_key(set, key_of(tid));
    if (added) set->count++;
    return added;
}

bool has_tid(const TidSet* set, Tid tid)
{
    if (set->file != nullptr && fits_file(tid)) return tid_file_has(set->file, tid);
    return set->capacity > 0 && set->slots[find_slot(set, key_of(tid))] != 0;
}

void free_tid_set(TidSet* set)
{
    if (set->file != nullptr) close_tid_file(set->file);
    if (set->slots != nullptr) pfree(set->slots);
    *set = {};
}

}  // namespace pgwarp
