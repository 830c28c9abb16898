// Rows of any shape with their addresses, collected for one request. Lives in palloc'ed memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

struct RowBatch {
    RowView rows;  // those collected
    Tid* tids;
    uint32 most_rows;
    uint64 most_words;  // of lists
    // What `rows` shows.
    uint64* attributes;
    float* values;
    uint64* offsets;
    uint32* words;
    float* weights;
};

// An empty batch for rows of this shape: at most so many, and about so many bytes. There is room for any row.
RowBatch* make_row_batch(const IndexShape& shape, uint32 most_rows, uint64 most_bytes);
// Whether the batch has room for another row.
bool has_room(const RowBatch* batch, const RowView& row);
// Takes a copy of a row; there must be room.
void add_row(RowBatch* batch, Tid tid, const RowView& row);
void clear_row_batch(RowBatch* batch);
void free_row_batch(RowBatch* batch);

}  // namespace pgwarp
