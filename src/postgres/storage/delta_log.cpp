// Creates delta logs and appends to them.
#include "postgres/storage/delta_log.h"

#include "postgres/storage/checksum.h"
#include "postgres/storage/content_record.h"
#include "postgres/storage/delta_pages.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/free_pages.h"

extern "C" {
#include "storage/proc.h"
}

namespace pgwarp
{

namespace
{

// A log whose head is locked exclusively, with the new content of its head. The page table (samples) is locked and
// copied when the first page is added.
struct OpenLog {
    Relation index;
    const MetaPage* meta;
    uint64 segment_id;
    Buffer head_buffer;
    LogHead head;
    Buffer samples_buffer;
    LogSamples samples;
};

Buffer lock_page(const OpenLog& log, PageKind kind, BlockNumber block, uint32 ordinal)
{
    return read_page(log.index, block, kind, log.segment_id, ordinal, BUFFER_LOCK_EXCLUSIVE);
}

// Add a page after the stream's tail: one left over by a crash, a free one or a new one. The same record links it.
BlockNumber add_stream_page(const OpenLog& log, PageKind kind, const LogStream& stream)
{
    const Buffer tail_buffer = lock_page(log, kind, stream.tail, stream.tail_ordinal);
    const BlockNumber left_over = page_trailer(BufferGetPage(tail_buffer))->next;
    if (left_over != InvalidBlockNumber) {
        UnlockReleaseBuffer(tail_buffer);
        return left_over;
    }
    BlockNumber block = InvalidBlockNumber;
    const Buffer free_buffer = lock_free_list(log.index, *log.meta, &block);
    const bool is_free = BufferIsValid(free_buffer);
    const Buffer buffer = is_free ? open_free_page(log.index, block) : extend_index(log.index, MAIN_FORKNUM);
    block = BufferGetBlockNumber(buffer);
    GenericXLogState* state = GenericXLogStart(log.index);
    Page page = GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE);
    init_page(page, kind, log.segment_id, stream.tail_ordinal + 1);
    page_trailer(GenericXLogRegisterBuffer(state, tail_buffer, 0))->next = block;
    if (is_free) take_locked_page(GenericXLogRegisterBuffer(state, free_buffer, 0));
    fault_point("insert: before a page is added");
    GenericXLogFinish(state);
    fault_point("insert: page added");
    UnlockReleaseBuffer(buffer);
    if (is_free) UnlockReleaseBuffer(free_buffer);
    UnlockReleaseBuffer(tail_buffer);
    return block;
}

// Lock the page table, unless it is locked already.
LogSamples* open_samples(OpenLog* log)
{
    if (!BufferIsValid(log->samples_buffer)) {
        log->samples_buffer = lock_page(*log, PageKind::log_head, log->head.samples, 1);
        memcpy(&log->samples, page_content(BufferGetPage(log->samples_buffer)), sizeof(log->samples));
        check_log_samples(log->index, log->head.samples, log->samples);
    }
    return &log->samples;
}

// Move the stream's tail to the page with this ordinal, which is the present one or the next.
void advance_tail(OpenLog* log, PageKind kind, uint64 ordinal)
{
    LogStream* stream = kind == PageKind::log_entries ? &log->head.entries : &log->head.values;
    if (ordinal == stream->tail_ordinal) return;
    if (ordinal != static_cast<uint64>(stream->tail_ordinal) + 1) {
        report_corruption(log->index, BufferGetBlockNumber(log->head_buffer), "the head of a delta log is impossible");
    }
    LogSamples* samples = open_samples(log);
    stream->tail = add_stream_page(*log, kind, *stream);
    stream->tail_ordinal++;
    note_page(kind == PageKind::log_entries ? &samples->entries : &samples->values, stream->tail_ordinal, stream->tail);
}

// Write the value without its last piece, one record a page. Afterwards the tail is the page of the last piece. Returns
// the number of bytes written.
uint32 write_leading_value(OpenLog* log, const char* bytes, uint32 length)
{
    uint32 written = 0;
    for (;;) {
        const uint64 position = log->head.value_end + written;
        const uint32 within = static_cast<uint32>(position % page_capacity);
        advance_tail(log, PageKind::log_values, position / page_capacity);
        const uint32 room = page_capacity - within;
        if (length - written <= room) return written;
        const LogStream& stream = log->head.values;
        const Buffer buffer = lock_page(*log, PageKind::log_values, stream.tail, stream.tail_ordinal);
        const ContentChange change = {buffer, within, bytes + written, room};
        fault_point("insert: before part of the value");
        write_contents(log->index, &change, 1);
        fault_point("insert: part of the value written");
        UnlockReleaseBuffer(buffer);
        written += room;
    }
}

// Write the last piece of the value, if it has one, the entry, the head and the page table in one record, which adds
// the row to the log.
void write_entry(OpenLog* log, DeltaEntry entry, const char* last_piece, uint32 last_length)
{
    LogHead* head = &log->head;
    advance_tail(log, PageKind::log_entries, head->entry_end / entries_per_page);
    const bool has_value = last_length > 0;
    const Buffer value_buffer =
        has_value ? lock_page(*log, PageKind::log_values, head->values.tail, head->values.tail_ordinal) : InvalidBuffer;
    const Buffer entry_buffer = lock_page(*log, PageKind::log_entries, head->entries.tail, head->entries.tail_ordinal);
    const uint32 value_at = static_cast<uint32>((head->value_end + entry.length - last_length) % page_capacity);
    const uint32 entry_at = static_cast<uint32>(head->entry_end % entries_per_page * sizeof(entry));
    const bool page_added = BufferIsValid(log->samples_buffer);
    head->entry_end++;
    head->value_end += entry.length;
    head->crc = head_crc(*head);
    if (page_added) log->samples.crc = samples_crc(log->samples);
    ContentChange changes[most_content_changes];
    uint32 count = 0;
    if (has_value) changes[count++] = {value_buffer, value_at, last_piece, last_length};
    changes[count++] = {entry_buffer, entry_at, &entry, sizeof(entry)};
    changes[count++] = {log->head_buffer, 0, head, sizeof(*head)};
    if (page_added) changes[count++] = {log->samples_buffer, 0, &log->samples, sizeof(log->samples)};
    fault_point("insert: before the entry");
    write_contents(log->index, changes, count);
    fault_point("insert: entry written");
    if (page_added) UnlockReleaseBuffer(log->samples_buffer);
    UnlockReleaseBuffer(entry_buffer);
    if (has_value) UnlockReleaseBuffer(value_buffer);
}

uint32 process_number()
{
#if PG_VERSION_NUM >= 170000
    return static_cast<uint32>(MyProcNumber);
#else
    return static_cast<uint32>(MyProc->pgprocno);
#endif
}

Buffer pin_head(Relation index, const MetaPage& meta, uint32 log)
{
    const BlockNumber head = meta.logs[log].head;
    if (!block_exists(index, head)) report_corruption(index, head, "the block lies past the end of the index");
    return ReadBuffer(index, head);
}

// Lock the head of a log: the one of this process's number, or another that is free when that one is busy.
uint32 lock_some_head(Relation index, const MetaPage& meta, Buffer* buffer)
{
    const uint32 first = process_number() % delta_log_count;
    for (uint32 i = 0; i < delta_log_count; ++i) {
        const uint32 log = (first + i) % delta_log_count;
        *buffer = pin_head(index, meta, log);
        if (ConditionalLockBuffer(*buffer)) return log;
        ReleaseBuffer(*buffer);
    }
    *buffer = ReadBuffer(index, meta.logs[first].head);
    LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
    return first;
}

// Create a page with this content; returns its block.
BlockNumber create_page(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, uint32 ordinal,
                        const void* content, uint32 bytes)
{
    const Buffer buffer = extend_index(index, fork);
    init_page(BufferGetPage(buffer), kind, segment_id, ordinal);
    memcpy(page_content(BufferGetPage(buffer)), content, bytes);
    set_page_content_bytes(BufferGetPage(buffer), bytes);
    MarkBufferDirty(buffer);
    const BlockNumber block = BufferGetBlockNumber(buffer);
    UnlockReleaseBuffer(buffer);
    return block;
}

// Create the first page of an empty stream.
void create_stream(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, LogStream* stream,
                   StreamSamples* samples)
{
    stream->tail = create_page(index, fork, kind, segment_id, 0, "", 0);
    samples->stride = 1;
    note_page(samples, 0, stream->tail);
}

DeltaEntry make_entry(ItemPointer tid, uint16 flags, const char* value, uint32 bytes)
{
    DeltaEntry entry;
    memset(&entry, 0, sizeof(entry));
    entry.block = ItemPointerGetBlockNumber(tid);
    entry.offset = ItemPointerGetOffsetNumber(tid);
    entry.flags = flags;
    entry.length = bytes;
    entry.value_crc = bytes_crc(value, bytes);
    return entry;
}

// Append to the log whose head is locked, and unlock it. Returns the entry's ordinal.
uint64 append_to_log(Relation index, const MetaPage& meta, uint32 number, Buffer head_buffer, DeltaEntry entry,
                     const char* value)
{
    OpenLog log;
    log.index = index;
    log.meta = &meta;
    log.samples_buffer = InvalidBuffer;
    log.head_buffer = head_buffer;
    log.segment_id = log_segment_id(meta, number);
    check_page(index, log.head_buffer, PageKind::log_head, log.segment_id, 0);
    memcpy(&log.head, page_content(BufferGetPage(log.head_buffer)), sizeof(log.head));
    check_log_head(index, meta, number, log.head);

    entry.value_position = log.head.value_end;
    entry.crc = entry_crc(entry);
    const uint32 leading = write_leading_value(&log, value, entry.length);
    const uint64 ordinal = log.head.entry_end;
    write_entry(&log, entry, value + leading, entry.length - leading);
    UnlockReleaseBuffer(log.head_buffer);
    return ordinal;
}

}  // namespace

void create_delta_log(Relation index, ForkNumber fork, uint64 segment_id, LogStart* start)
{
    LogHead head;
    LogSamples samples;
    memset(&head, 0, sizeof(head));
    memset(&samples, 0, sizeof(samples));
    create_stream(index, fork, PageKind::log_entries, segment_id, &head.entries, &samples.entries);
    create_stream(index, fork, PageKind::log_values, segment_id, &head.values, &samples.values);
    samples.crc = samples_crc(samples);
    head.samples = create_page(index, fork, PageKind::log_head, segment_id, 1, &samples, sizeof(samples));
    head.crc = head_crc(head);
    start->head = create_page(index, fork, PageKind::log_head, segment_id, 0, &head, sizeof(head));
    start->start = 0;
    start->entries = {head.entries.tail, 0};
    start->values = {head.values.tail, 0};
}

DeltaPlace append_delta(Relation index, const MetaPage& meta, ItemPointer tid, const DeltaValue& value)
{
    DeltaEntry entry = make_entry(tid, 0, value.value, value.bytes);
    if (is_list(meta.shape.element)) entry.row_bytes = value.row_bytes;
    Buffer head = InvalidBuffer;
    const uint32 log = lock_some_head(index, meta, &head);
    return {log, append_to_log(index, meta, log, head, entry, value.value)};
}

void append_unplaced(Relation index, const MetaPage& meta, ItemPointer tid, bool is_null, const uint64* attributes)
{
    const char* value = attributes == nullptr ? "" : reinterpret_cast<const char*>(attributes);
    const uint32 bytes = meta.shape.attribute_count * static_cast<uint32>(sizeof(uint64));
    const DeltaEntry entry = make_entry(tid, is_null ? delta_null : 0, value, bytes);
    const Buffer head = pin_head(index, meta, unplaced_log);
    LockBuffer(head, BUFFER_LOCK_EXCLUSIVE);
    append_to_log(index, meta, unplaced_log, head, entry, value);
}

}  // namespace pgwarp
