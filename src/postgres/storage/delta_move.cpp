// Moves the last pages of delta logs to lower blocks.
#include "postgres/storage/delta_log.h"
#include "postgres/storage/delta_pages.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/free_pages.h"

namespace pgwarp
{

namespace
{

// A stream of a log whose head is locked exclusively.
struct TailMove {
    Relation index;
    const MetaPage* meta;
    uint32 log;
    PageKind kind;
    Buffer head_buffer;
    LogHead head;

    LogStream* stream() { return kind == PageKind::log_entries ? &head.entries : &head.values; }
    const StreamStart& start() const
    {
        const LogStart& log_start = meta->logs[log];
        return kind == PageKind::log_entries ? log_start.entries : log_start.values;
    }
    uint64 segment_id() const { return log_segment_id(*meta, log); }
};

// Whether there is a free page before the tail, and the head can record the move. The head records one moved page:
// while the metapage still names the old block of that page as the stream's start, no other page may move.
bool can_move(TailMove* move)
{
    const LogStream& stream = *move->stream();
    const bool named = first_page(stream, move->start()).block != move->start().block;
    if (named && stream.tail_ordinal != move->start().ordinal) return false;
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    read_free_list(move->index, *move->meta, list);
    const bool has_place = list->count > 0 && list->extents[0].start < stream.tail;
    pfree(list);
    return has_place;
}

// The page before the tail, locked; InvalidBuffer when the tail is the first page.
Buffer lock_page_before(TailMove* move)
{
    const LogStream& stream = *move->stream();
    if (stream.tail_ordinal <= move->start().ordinal) return InvalidBuffer;
    const uint32 ordinal = stream.tail_ordinal - 1;
    const BlockNumber block = find_stream_page(move->index, *move->meta, move->log, move->kind, move->head, ordinal);
    return read_page(move->index, block, move->kind, move->segment_id(), ordinal, BUFFER_LOCK_EXCLUSIVE);
}

// Enter the new block in the page table.
void put_sample(StreamSamples* samples, uint32 ordinal, BlockNumber block)
{
    if (ordinal % samples->stride == 0) samples->blocks[ordinal / samples->stride] = block;
}

// One record copies the page and changes all links to it: the head, the page table and the page before. The old page
// stays as it is, for sessions that still read it; it ends where the log ended.
void write_move(TailMove* move, Buffer old_buffer, Buffer new_buffer, Buffer before_buffer, Buffer samples_buffer)
{
    const BlockNumber block = BufferGetBlockNumber(new_buffer);
    LogStream* stream = move->stream();
    stream->tail = block;
    stream->moved = {block, stream->tail_ordinal};
    move->head.crc = head_crc(move->head);
    GenericXLogState* state = GenericXLogStart(move->index);
    memcpy(GenericXLogRegisterBuffer(state, new_buffer, GENERIC_XLOG_FULL_IMAGE), BufferGetPage(old_buffer), BLCKSZ);
    memcpy(page_content(GenericXLogRegisterBuffer(state, move->head_buffer, 0)), &move->head, sizeof(move->head));
    auto* samples = reinterpret_cast<LogSamples*>(page_content(GenericXLogRegisterBuffer(state, samples_buffer, 0)));
    check_log_samples(move->index, move->head.samples, *samples);
    put_sample(move->kind == PageKind::log_entries ? &samples->entries : &samples->values, stream->tail_ordinal, block);
    samples->crc = samples_crc(*samples);
    if (BufferIsValid(before_buffer)) {
        page_trailer(GenericXLogRegisterBuffer(state, before_buffer, 0))->next = block;
    }
    fault_point("merge: before a log's page is moved");
    GenericXLogFinish(state);
    fault_point("merge: log's page moved");
}

void move_tail(TailMove* move)
{
    const LogStream stream = *move->stream();
    const Buffer before = lock_page_before(move);
    const Buffer old =
        read_page(move->index, stream.tail, move->kind, move->segment_id(), stream.tail_ordinal, BUFFER_LOCK_EXCLUSIVE);
    const Extent place = take_free_extent(move->index, *move->meta, 1);
    if (place.count > 0) {
        const Buffer fresh = open_free_page(move->index, place.start);
        const Buffer samples = read_page(move->index, move->head.samples, PageKind::log_head, move->segment_id(), 1,
                                         BUFFER_LOCK_EXCLUSIVE);
        write_move(move, old, fresh, before, samples);
        UnlockReleaseBuffer(samples);
        UnlockReleaseBuffer(fresh);
    }
    UnlockReleaseBuffer(old);
    if (BufferIsValid(before)) UnlockReleaseBuffer(before);
}

void move_stream_tail(Relation index, const MetaPage& meta, uint32 log, PageKind kind)
{
    TailMove move = {index, &meta, log, kind, InvalidBuffer, {}};
    move.head_buffer =
        read_page(index, meta.logs[log].head, PageKind::log_head, move.segment_id(), 0, BUFFER_LOCK_EXCLUSIVE);
    memcpy(&move.head, page_content(BufferGetPage(move.head_buffer)), sizeof(move.head));
    check_log_head(index, meta, log, move.head);
    if (can_move(&move)) move_tail(&move);
    UnlockReleaseBuffer(move.head_buffer);
}

}  // namespace

void move_log_tails(Relation index, const MetaPage& meta)
{
    for (uint32 log = 0; log < count_logs(meta); ++log) {
        CHECK_FOR_INTERRUPTS();
        move_stream_tail(index, meta, log, PageKind::log_entries);
        move_stream_tail(index, meta, log, PageKind::log_values);
    }
}

}  // namespace pgwarp
