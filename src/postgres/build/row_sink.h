// Sends rows of a build to the engine, many at a time.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/client/row_batch.h"
#include "postgres/client/transfer_buffer.h"

namespace pgwarp
{

// Rows of one process on their way to the build `token`. Lives in palloc'ed memory.
struct RowSink {
    uint64 token;
    uint32 dimensions;
    uint32 capacity;  // rows that fit
    uint32 count;     // rows waiting
    Tid* tids;
    float* vectors;
    TransferBuffer buffer;  // map is null when rows go inline
    uint64 rows_offset;
    RowBatch* batch;  // of rows that are no plain vectors; else null
    uint64 sent;
};

RowSink* open_row_sink(uint64 token, const IndexShape& shape);
// Where the next row's vector is to be put; sends what waits when there is no room.
float* next_row(RowSink* sink);
// Takes the row that was put there.
void add_row(RowSink* sink, ItemPointer tid);
// Takes a copy of a row of any shape.
void add_row(RowSink* sink, Tid tid, const RowView& row);
void flush_rows(RowSink* sink);
// Sends what waits and gives everything back.
void close_row_sink(RowSink* sink);

}  // namespace pgwarp
