// Included columns (INCLUDE): a row's values of them, stored for the backend alone; the engine never sees them. They
// are a PostgreSQL index tuple of these columns, MAXALIGNed, at most max_included_bytes long. In the place of a heap
// address it carries a crc32c of itself and its row's heap address: a tuple at a wrong place is known for one.
//
// Rows of the arrays have theirs in row order in the array "included": of one length each, [rows][length]; or, with the
// start of each in "included_at", one after the other. Rows of a delta log have theirs after the vector, in the value.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

extern "C" {
#include "access/itup.h"
}

namespace pgwarp
{

bool has_included_columns(Relation index);

// The included columns alone, palloc'ed.
TupleDesc included_descriptor(Relation index);

// Makes a row's tuple, palloc'ed: values and nulls of all columns of the index. Detoasts what is stored outside.
// Raises ERRCODE_PROGRAM_LIMIT_EXCEEDED when it is too long.
IndexTuple form_included(TupleDesc included, ItemPointer tid, const Datum* values, const bool* nulls);

// Whether `length` bytes are the tuple of the row at `tid`.
bool included_is_intact(const char* bytes, uint64 length, Tid tid);

// Copies the tuple of a row of the arrays to out[max_included_bytes]. False when the index is of another generation by
// now; raises ERRCODE_INDEX_CORRUPTED when the tuple isn't that row's.
bool read_included_row(Relation index, const Directory& directory, uint64 row, Tid tid, char* out);

// The same for an entry of a delta log. False when it was merged away.
bool read_included_entry(Relation index, const MetaPage& meta, uint32 log, uint64 ordinal, Tid tid, char* out);

}  // namespace pgwarp
