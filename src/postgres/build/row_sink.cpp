// Batches in a transfer buffer or in memory.
#include "postgres/build/row_sink.h"

#include "postgres/client/request.h"
#include "postgres/client/row_pieces.h"

namespace pgwarp
{

namespace
{

constexpr uint64 inline_bytes = 1U << 20;
constexpr uint64 vector_alignment = 64;

// Divide a leased transfer buffer into tids and vectors, or allocated memory when no buffer is free.
void place_rows(RowSink* sink)
{
    const uint64 row_bytes = sizeof(Tid) + sizeof(float) * sink->dimensions;
    sink->buffer = lease_transfer_buffer(BufferPurpose::bulk);
    if (sink->buffer.map != nullptr && sink->buffer.bytes >= row_bytes + vector_alignment) {
        sink->capacity = static_cast<uint32>((sink->buffer.bytes - vector_alignment) / row_bytes);
        sink->rows_offset = TYPEALIGN(vector_alignment, sizeof(Tid) * sink->capacity);
        sink->tids = reinterpret_cast<Tid*>(sink->buffer.map);
        sink->vectors = reinterpret_cast<float*>(sink->buffer.map + sink->rows_offset);
        return;
    }
    sink->capacity = static_cast<uint32>(Max(uint64{1}, inline_bytes / row_bytes));
    sink->tids = static_cast<Tid*>(palloc(sizeof(Tid) * sink->capacity));
    sink->vectors = static_cast<float*>(palloc(sizeof(float) * sink->dimensions * sink->capacity));
}

}  // namespace

RowSink* open_row_sink(uint64 token, const IndexShape& shape)
{
    auto* sink = static_cast<RowSink*>(palloc0(sizeof(RowSink)));
    sink->token = token;
    sink->dimensions = shape.dimensions;
    if (is_list(shape.element) || shape.attribute_count > 0) {
        sink->batch = make_row_batch(shape, PG_UINT32_MAX, inline_bytes);
    } else {
        place_rows(sink);
    }
    return sink;
}

float* next_row(RowSink* sink)
{
    if (sink->count == sink->capacity) flush_rows(sink);
    return sink->vectors + static_cast<size_t>(sink->count) * sink->dimensions;
}

void add_row(RowSink* sink, ItemPointer tid)
{
    Tid* out = &sink->tids[sink->count++];
    out->block = ItemPointerGetBlockNumber(tid);
    out->offset = ItemPointerGetOffsetNumber(tid);
    out->reserved = 0;
}

void add_row(RowSink* sink, Tid tid, const RowView& row)
{
    if (sink->batch == nullptr) {
        memcpy(next_row(sink), row.values, sizeof(float) * row.width);
        sink->tids[sink->count++] = tid;
        return;
    }
    if (!has_room(sink->batch, row)) flush_rows(sink);
    add_row(sink->batch, tid, row);
}

static void flush_batch(RowSink* sink)
{
    const RowView& rows = sink->batch->rows;
    if (rows.count == 0) return;
    BuildRowsRequest request = {};
    request.token = sink->token;
    request.count = static_cast<uint32>(rows.count);
    request.buffer = no_buffer;
    request.form = block_of(rows).form;
    RequestPiece pieces[2 + most_row_pieces] = {{&request, sizeof(request)},
                                                {sink->batch->tids, static_cast<uint32>(sizeof(Tid) * rows.count)}};
    engine_request(MessageType::build_rows, pieces, 2 + row_pieces(rows, pieces + 2), false);
    sink->sent += rows.count;
    clear_row_batch(sink->batch);
}

void flush_rows(RowSink* sink)
{
    if (sink->batch != nullptr) return flush_batch(sink);
    if (sink->count == 0) return;
    BuildRowsRequest request = {};
    request.token = sink->token;
    request.count = sink->count;
    request.buffer = no_buffer;
    RequestPiece pieces[3] = {{&request, sizeof(request)}, {}, {}};
    int piece_count = 1;
    if (sink->buffer.map != nullptr) {
        request.buffer = sink->buffer.id;
        request.rows_offset = sink->rows_offset;
    } else {
        pieces[1] = {sink->tids, static_cast<uint32>(sizeof(Tid) * sink->count)};
        pieces[2] = {sink->vectors, static_cast<uint32>(sizeof(float) * sink->dimensions * sink->count)};
        piece_count = 3;
    }
    engine_request(MessageType::build_rows, pieces, piece_count, false);
    sink->sent += sink->count;
    sink->count = 0;
}

void close_row_sink(RowSink* sink)
{
    flush_rows(sink);
    if (sink->batch != nullptr) {
        free_row_batch(sink->batch);
    } else if (sink->buffer.map != nullptr) {
        return_transfer_buffer(&sink->buffer);
    } else {
        pfree(sink->tids);
        pfree(sink->vectors);
    }
    pfree(sink);
}

}  // namespace pgwarp
