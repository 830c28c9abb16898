// What of a heap row goes into an index.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// Writes the row's vector, as the index keeps it, to out[shape.dimensions]: normalised for cosine. False when such a
// row isn't indexed (a zero vector under cosine). Raises 22000 "expected %d dimensions, not %d". NULLs are the
// caller's.
bool index_row_value(Relation index, const IndexShape& shape, Datum value, float* out);

// Scales to unit length in float64. False for the zero vector, which is left alone.
bool normalise(float* vector, uint32 dimensions);

}  // namespace pgwarp
