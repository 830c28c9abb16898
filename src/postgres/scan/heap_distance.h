// Canonical distances of heap rows, fetched as an index scan fetches them.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/element_type.h"
#include "postgres/am/table_owner.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/snapshot.h"
}

namespace pgwarp
{

// Fetches rows by the tids of an index. Lives in the memory context in which it was opened.
struct HeapReader {
    Relation heap;
    Snapshot snapshot;
    KeyType key;
    int vector;  // position of the key among the index's columns
    IndexInfo* info;
    EState* estate;
    ExprState* predicate;  // of a partial index, prepared when needed
    TupleTableSlot* slot;
    IndexFetchTableData* fetch;
    MemoryContext row_context;
};

// Allocates the reader in the current memory context. `index` gives the expressions and the predicate.
HeapReader* open_heap_reader(Relation heap, Relation index, Snapshot snapshot);
void close_heap_reader(HeapReader* reader);

// The reader evaluates expressions and predicates of the index as the table's owner, and switches users for each row.
// For an index that has any, this scope switches once for many rows; else it does nothing. The caller must run no other
// user's functions in it.
OwnerScope enter_owner_of(const HeapReader* reader);

// Whether the row in a slot of the heap satisfies the index's predicate.
bool row_is_indexed(HeapReader* reader, TupleTableSlot* slot);

// The vector of the visible row at `tid`; null when there is no such row or it isn't indexed. Valid until the next
// call.
const float* fetch_row_vector(HeapReader* reader, Tid tid, uint32 dimensions);

// The values of all columns of the index, for the visible row at `tid`; false when there is no such row. Valid until
// the next call.
bool fetch_row_values(HeapReader* reader, Tid tid, Datum* values, bool* nulls);

// The value of the index's key of the visible row at `tid`; false when there is no such row or it is NULL. Valid until
// the next call.
bool fetch_row_key(HeapReader* reader, Tid tid, Datum* key);

// The canonical distance of the visible row at `tid` to a query of one row; false when there is none.
bool fetch_row_distance(HeapReader* reader, Tid tid, Metric metric, const RowView& query, double* distance);

// The values of all columns of the index of a row in a slot of the heap. Valid until the next call.
void slot_values(HeapReader* reader, TupleTableSlot* slot, Datum* values, bool* nulls);

// The value of the index's key of a row in a slot of the heap; false for a NULL. Valid until the next call.
bool slot_key(HeapReader* reader, TupleTableSlot* slot, Datum* key);

// The visible version of the row at `tid` as a query, palloc'ed, for keys that are lists. Raises an error where there
// is none.
RowView fetch_row_query(HeapReader* reader, ItemPointerData tid);

// The vector of a row in a slot of the heap; null for a NULL or other dimensions. Valid until the next call.
const float* slot_vector(HeapReader* reader, TupleTableSlot* slot, uint32 dimensions);

}  // namespace pgwarp
