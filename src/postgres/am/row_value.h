// Converts a heap row's value to the form that an index stores.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

// Writes the row's vector in the form that builds take to out[shape.dimensions]: scaled to unit length for cosine,
// unless the index keeps halves unchanged. False when such a row isn't indexed (a zero vector under cosine). Raises
// 22000 "expected %d dimensions, not %d". The caller handles NULL.
bool index_row_value(const IndexShape& shape, Datum value, float* out);
// Returns a row of text in the form that builds take; palloc'ed. Every text is indexed. Raises 54000 for one that is
// too long. The caller handles NULL.
RowView index_list_value(Datum value);

// A row in the form of the delta logs (storage/stored_value.h).
struct StoredRow {
    char* bytes;    // palloc'ed, with room for more bytes after the row; null when the row is not indexed
    uint32 length;  // of the row
};
// Encodes a vector or a text, like the functions above.
StoredRow index_stored_value(const IndexShape& shape, Datum value, Size room);

}  // namespace pgwarp
