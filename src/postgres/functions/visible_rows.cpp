#include "postgres/functions/visible_rows.h"

#include "numeric/hash.h"
#include "postgres/scan/heap_prefetch.h"

namespace pgwarp
{

namespace
{

constexpr uint64 fewest_slots = 1024;

uint64 key_of(Tid entry)
{
    return uint64{entry.block} << 16 | entry.offset;
}

uint64* slot_of(const VisibleRows* rows, uint64 key)
{
    return &rows->slots[mix_hash(key) & rows->mask];
}

// Store an answer, overwriting another one. A slot cannot hold a visible tuple on another page.
void remember(VisibleRows* rows, Tid entry, Tid visible, bool found)
{
    if (found && visible.block != entry.block) return;
    const uint64 key = key_of(entry);
    *slot_of(rows, key) = key << 16 | (found ? visible.offset : 0);
}

Tid tid_in_slot(const TupleTableSlot* slot)
{
    return {ItemPointerGetBlockNumber(&slot->tts_tid), ItemPointerGetOffsetNumber(&slot->tts_tid), 0};
}

}  // namespace

VisibleRows* make_visible_rows(HeapReader* reader, uint64 expected)
{
    auto* rows = static_cast<VisibleRows*>(palloc(sizeof(VisibleRows)));
    const uint64 most = Max(fewest_slots, static_cast<uint64>(work_mem) * 1024 / sizeof(uint64));
    uint64 slots = fewest_slots;
    while (slots < expected && slots * 2 <= most) slots *= 2;
    rows->reader = reader;
    rows->mask = slots - 1;
    rows->slots = static_cast<uint64*>(
        MemoryContextAllocExtended(CurrentMemoryContext, sizeof(uint64) * slots, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    return rows;
}

bool knows_row(const VisibleRows* rows, Tid entry)
{
    const uint64 key = key_of(entry);
    return *slot_of(rows, key) >> 16 == key;
}

bool find_visible_row(VisibleRows* rows, Tid entry, Tid* visible)
{
    const uint64 key = key_of(entry);
    const uint64 known = *slot_of(rows, key);
    if (known >> 16 == key) {
        *visible = {entry.block, static_cast<uint16>(known), 0};
        return visible->offset != 0;
    }
    HeapReader* reader = rows->reader;
    ItemPointerData pointer;
    ItemPointerSet(&pointer, entry.block, entry.offset);
    bool again = false;
    bool all_dead = false;
    bool found = false;
    ExecClearTuple(reader->slot);
    reuse_page(reader->heap, reader->fetch, entry.block);
    do {
        found = table_index_fetch_tuple(reader->fetch, &pointer, reader->snapshot, reader->slot, &again, &all_dead);
    } while (!found && again);
    if (found) *visible = tid_in_slot(reader->slot);
    remember(rows, entry, *visible, found);
    return found;
}

const float* fetch_visible_vector(VisibleRows* rows, Tid entry, uint32 dimensions, Tid* visible)
{
    reuse_page(rows->reader->heap, rows->reader->fetch, entry.block);
    const float* vector = fetch_row_vector(rows->reader, entry, dimensions);
    if (vector != nullptr) *visible = tid_in_slot(rows->reader->slot);
    return vector;
}

}  // namespace pgwarp
