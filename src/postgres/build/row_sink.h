// Sends rows to a build of the engine, in batches.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/client/row_batch.h"
#include "postgres/client/transfer_buffer.h"

namespace pgwarp
{

// A batch of rows for the build `token`. Allocated in the current memory context.
struct RowSink {
    uint64 token;
    uint32 dimensions;
    uint32 capacity;  // rows that the batch can hold
    uint32 count;     // rows in the batch
    Tid* tids;
    float* vectors;
    TransferBuffer buffer;  // map is null when rows are sent inline
    uint64 rows_offset;
    RowBatch* batch;  // for rows that are not dense or have attributes; else null
    uint64 sent;
};

// A sink for rows of this shape, sent to the build `token`.
RowSink* open_row_sink(uint64 token, const IndexShape& shape);
// Returns the place of the next row's vector, [dimensions]. Sends the batch first when it is full.
float* next_row(RowSink* sink);
// Adds the row whose vector was written to that place.
void add_row(RowSink* sink, ItemPointer tid);
// Adds a copy of a row of any shape.
void add_row(RowSink* sink, Tid tid, const RowView& row);
// Sends the batch, which is empty afterwards.
void flush_rows(RowSink* sink);
// Sends the last batch and frees the sink.
void close_row_sink(RowSink* sink);

}  // namespace pgwarp
