// What of a heap row goes into an index.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// Writes the row's vector, as a build wants it, to out[shape.dimensions]: of unit length for cosine, but where the
// index keeps halves as they came. False when such a row isn't indexed (a zero vector under cosine). Raises 22000
// "expected %d dimensions, not %d". NULLs are the caller's.
bool index_row_value(const IndexShape& shape, Datum value, float* out);

// The same as it lies in the logs, to out[stored_value_bytes()].
bool index_stored_value(const IndexShape& shape, Datum value, char* out);

}  // namespace pgwarp
