// Rows of any shape with their tuple ids, collected for one request. Lives in palloc'ed memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

struct RowBatch {
    RowView rows;  // the collected rows
    Tid* tids;
    uint32 most_rows;
    uint64 most_words;  // of lists
    // The arrays that `rows` points to.
    uint64* attributes;
    float* values;
    uint64* offsets;
    uint32* words;
    float* weights;
};

// Returns an empty batch for rows of this shape, with room for at most most_rows rows and about most_bytes bytes. Any
// single row fits an empty batch.
RowBatch* make_row_batch(const IndexShape& shape, uint32 most_rows, uint64 most_bytes);
// Whether the batch has room for another row.
bool has_room(const RowBatch* batch, const RowView& row);
// Copies a row into the batch; has_room() must be true.
void add_row(RowBatch* batch, Tid tid, const RowView& row);
// Empties the batch and keeps its memory.
void clear_row_batch(RowBatch* batch);
void free_row_batch(RowBatch* batch);

}  // namespace pgwarp
