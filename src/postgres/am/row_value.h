// Converts a heap row's value to the form that an index stores.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/types/list_value.h"

namespace pgwarp
{

// Writes the row's vector in the form that builds take to out[shape.dimensions]: scaled to unit length for cosine,
// unless the index keeps halves unchanged. False when such a row isn't indexed (a zero vector under cosine). Raises
// 22000 "expected %d dimensions, not %d". The caller handles NULL.
bool index_row_value(const IndexShape& shape, Datum value, float* out);

// Reads the row of a list type; palloc'ed. False, and errors, as above.
bool index_row_list(const IndexShape& shape, const ListType& list, Datum value, RowView* row);

// A row in the form of the delta logs (storage/stored_value.h).
struct StoredRow {
    char* bytes;    // palloc'ed, with room for more bytes after the row; null when the row is not indexed
    uint32 length;  // of the row
};
// Encodes a vector like index_row_value(), or the row of a list type.
StoredRow index_stored_value(const IndexShape& shape, const ListType* list, Datum value, Size room);

}  // namespace pgwarp
