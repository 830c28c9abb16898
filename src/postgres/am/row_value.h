// Converts a heap row's value to the form that an index stores.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// Writes the row's vector in the form that builds take to out[shape.dimensions]: scaled to unit length for cosine,
// unless the index keeps halves unchanged. False when such a row isn't indexed (a zero vector under cosine). Raises
// 22000 "expected %d dimensions, not %d". The caller handles NULL.
bool index_row_value(const IndexShape& shape, Datum value, float* out);

// Writes the row in the form of the delta logs (storage/stored_value.h) to out[stored_value_bytes()]. Otherwise the
// same.
bool index_stored_value(const IndexShape& shape, Datum value, char* out);

}  // namespace pgwarp
