// Fetches heap rows and evaluates the index's expressions on them.
#include "postgres/scan/heap_distance.h"

#include "postgres/types/any_vector.h"

extern "C" {
#include "executor/executor.h"
}

namespace pgwarp
{

HeapReader* open_heap_reader(Relation heap, Relation index, Snapshot snapshot)
{
    auto* reader = static_cast<HeapReader*>(palloc0(sizeof(HeapReader)));
    reader->heap = heap;
    reader->snapshot = snapshot;
    reader->key = index_key_type(index);
    reader->vector = vector_column(index);
    // Preparation simplifies expressions, which may run functions in them.
    const OwnerScope scope = enter_owner(heap->rd_rel->relowner);
    reader->info = BuildIndexInfo(index);
    leave_owner(scope);
    reader->estate = CreateExecutorState();
    reader->slot = table_slot_create(heap, nullptr);
    reader->fetch = table_index_fetch_begin(heap PGWARP_NO_SCAN_FLAGS);
    reader->row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp heap row", ALLOCSET_DEFAULT_SIZES);
    return reader;
}

void close_heap_reader(HeapReader* reader)
{
    table_index_fetch_end(reader->fetch);
    ExecDropSingleTupleTableSlot(reader->slot);
    FreeExecutorState(reader->estate);
    MemoryContextDelete(reader->row_context);
    pfree(reader);
}

OwnerScope enter_owner_of(const HeapReader* reader)
{
    if (reader->info->ii_Expressions == NIL && reader->info->ii_Predicate == NIL) return {};
    return enter_owner(reader->heap->rd_rel->relowner);
}

bool row_is_indexed(HeapReader* reader, TupleTableSlot* slot)
{
    if (reader->info->ii_Predicate == NIL) return true;
    const OwnerScope scope = enter_owner_of(reader);
    if (reader->predicate == nullptr) {
        reader->predicate = ExecPrepareQual(reader->info->ii_Predicate, reader->estate);
    }
    ExprContext* context = GetPerTupleExprContext(reader->estate);
    ResetExprContext(context);
    context->ecxt_scantuple = slot;
    const bool indexed = ExecQual(reader->predicate, context);
    leave_owner(scope);
    return indexed;
}

void slot_values(HeapReader* reader, TupleTableSlot* slot, Datum* values, bool* nulls)
{
    MemoryContextReset(reader->row_context);
    ExprContext* expression = GetPerTupleExprContext(reader->estate);
    ResetExprContext(expression);
    expression->ecxt_scantuple = slot;
    const OwnerScope scope = enter_owner_of(reader);
    FormIndexDatum(reader->info, slot, reader->estate, values, nulls);
    leave_owner(scope);
}

bool slot_key(HeapReader* reader, TupleTableSlot* slot, Datum* key)
{
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    slot_values(reader, slot, values, nulls);
    *key = values[reader->vector];
    return !nulls[reader->vector];
}

const float* slot_vector(HeapReader* reader, TupleTableSlot* slot, uint32 dimensions)
{
    Datum key;
    if (!slot_key(reader, slot, &key)) return nullptr;
    MemoryContext outer = MemoryContextSwitchTo(reader->row_context);
    const AnyVector vector = read_any_vector(reader->key.element, key);
    const float* floats = width_of(vector) == dimensions ? floats_of(vector) : nullptr;
    MemoryContextSwitchTo(outer);
    return floats;
}

// Put the row that is visible at `tid` into the reader's slot; false when there is none.
static bool fetch_row(HeapReader* reader, Tid tid)
{
    ItemPointerData pointer;
    ItemPointerSet(&pointer, tid.block, tid.offset);
    bool again = false;
    bool all_dead = false;
    ExecClearTuple(reader->slot);
    do {
        if (table_index_fetch_tuple(reader->fetch, &pointer, reader->snapshot, reader->slot, &again, &all_dead)) {
            return true;
        }
    } while (again);
    return false;
}

RowView fetch_row_query(HeapReader* reader, ItemPointerData tid)
{
    Datum key;
    if (!table_tuple_fetch_row_version(reader->heap, &tid, reader->snapshot, reader->slot) ||
        !slot_key(reader, reader->slot, &key)) {
        elog(ERROR, "a row of table \"%s\" is not visible any more", RelationGetRelationName(reader->heap));
    }
    return reader->key.list->read_query(key);
}

const float* fetch_row_vector(HeapReader* reader, Tid tid, uint32 dimensions)
{
    return fetch_row(reader, tid) ? slot_vector(reader, reader->slot, dimensions) : nullptr;
}

bool fetch_row_values(HeapReader* reader, Tid tid, Datum* values, bool* nulls)
{
    if (!fetch_row(reader, tid)) return false;
    slot_values(reader, reader->slot, values, nulls);
    return true;
}

bool fetch_row_key(HeapReader* reader, Tid tid, Datum* key)
{
    return fetch_row(reader, tid) && slot_key(reader, reader->slot, key);
}

bool fetch_row_distance(HeapReader* reader, Tid tid, Metric metric, const RowView& query, double* distance)
{
    if (query.layout() == RowLayout::dense) {
        const auto dimensions = static_cast<uint32>(query.width);
        const float* vector = fetch_row_vector(reader, tid, dimensions);
        if (vector == nullptr) return false;
        *distance = canonical_distance(metric, query.values, vector, dimensions);
        return true;
    }
    Datum key;
    if (!fetch_row_key(reader, tid, &key)) return false;
    MemoryContext outer = MemoryContextSwitchTo(reader->row_context);
    *distance = reader->key.list->distance(metric, query, key);
    MemoryContextSwitchTo(outer);
    return true;
}

}  // namespace pgwarp
