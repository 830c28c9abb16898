// How a row lies in the logs: halfvecs as they are, vectors as the index keeps them (of unit length for cosine), lists
// as their words (u32) and then, where they have weights, as many floats. Its attributes (u64) follow.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

// Of a dense row; 0 of lists, each of which has its own.
uint32 stored_value_bytes(const IndexShape& shape);
// What a row and its attributes take at most.
uint32 most_stored_bytes(const IndexShape& shape);
// Whether a list of this shape can take so many bytes.
bool is_list_length(const IndexShape& shape, uint32 row_bytes);

// The row's vector as the engine gets it: floats, of unit length for cosine.
void decode_stored_value(const IndexShape& shape, const char* stored, float* out);

// Where a stored row that is no plain vector is made ready for the engine.
struct StoredRowSpace {
    uint64 offsets[2];
    uint64 attributes[max_attributes];
    float* vector;  // [dimensions], of dense rows
};
// The row at `stored`, which has `row_bytes` and its attributes behind it, as the engine gets it. The view is of
// `stored`, which is aligned to 4 bytes, and of `space`.
RowView view_stored_row(const IndexShape& shape, const char* stored, uint32 row_bytes, StoredRowSpace* space);

// Scales to unit length in float64. False for the zero vector, which is left alone.
bool normalise(float* vector, uint32 dimensions);

}  // namespace pgwarp
