// Included columns (INCLUDE): the values of a row, stored for the backend alone; the engine never reads them. They form
// a PostgreSQL index tuple of these columns, MAXALIGNed, at most max_included_bytes long. In place of a heap address
// the tuple has a crc32c of itself and its row's heap address, by which a tuple at a wrong place is detected.
//
// For rows of the arrays, the array "included" holds the tuples in row order: tuples of equal length as [rows][length];
// others one after the other, with the start of each in "included_at". For rows of a delta log, the tuple follows the
// vector in the value.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

extern "C" {
#include "access/itup.h"
}

namespace pgwarp
{

bool has_included_columns(Relation index);

// The descriptor of the included columns alone, palloc'ed.
TupleDesc included_descriptor(Relation index);

// Makes a row's tuple, palloc'ed, from the values and nulls of its included columns. Detoasts external values.
// Raises ERRCODE_PROGRAM_LIMIT_EXCEEDED when the tuple is too long.
IndexTuple form_included(TupleDesc included, ItemPointer tid, const Datum* values, const bool* nulls);

// Whether these bytes are an intact tuple of the row at `tid`.
bool included_is_intact(const char* bytes, uint64 length, Tid tid);

// Copies the tuple of a row of the arrays to out[max_included_bytes]. False when the index has another generation by
// now. Raises ERRCODE_INDEX_CORRUPTED when the tuple isn't that row's.
bool read_included_row(Relation index, const PlacedSegment& segment, uint64 row, Tid tid, char* out);

// Copies the tuple of an entry of a delta log. False when the entry was merged into the arrays.
bool read_included_entry(Relation index, const MetaPage& meta, uint32 log, uint64 ordinal, Tid tid, char* out);

}  // namespace pgwarp
