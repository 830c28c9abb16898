// The stored form of a row in the logs: halfvecs unchanged; vectors as the index keeps them (of unit length for
// cosine); lists as their words (u32) followed by their weights (float), if they have weights. The row's attributes
// (u64) follow.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

// The length of a dense row; 0 for lists, whose lengths differ.
uint32 stored_value_bytes(const IndexShape& shape);
// The most bytes of a row and its attributes.
uint32 most_stored_bytes(const IndexShape& shape);
// The number of words of a stored list of this length.
uint32 stored_list_words(const IndexShape& shape, uint32 row_bytes);
// Whether a list of this shape can have this length.
bool is_list_length(const IndexShape& shape, uint32 row_bytes);

// Memory for decoding a stored row for the engine.
struct StoredRowSpace {
    uint64 offsets[2];
    uint64 attributes[max_attributes];
    float* vector;  // [dimensions], for rows of halves; else null
};
StoredRowSpace make_row_space(const IndexShape& shape);
void free_row_space(StoredRowSpace* space);
// A view of the row at `stored`, in the form that the engine takes: halves as floats, of unit length for cosine. The
// row has `row_bytes` bytes, and its attributes follow. The view points into `stored`, which is aligned to 4 bytes, and
// into `space`.
RowView view_stored_row(const IndexShape& shape, const char* stored, uint32 row_bytes, StoredRowSpace* space);

// Scales a vector to unit length in float64. False for the zero vector, which stays unchanged.
bool normalise(float* vector, uint32 dimensions);

}  // namespace pgwarp
