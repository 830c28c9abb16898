// Reads delta logs in order.
#include "postgres/storage/checksum.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/delta_pages.h"
#include "postgres/storage/included_tuple.h"
#include "postgres/storage/stored_value.h"

namespace pgwarp
{

namespace
{

// A copy of one page of a stream.
struct PageCopy {
    PageKind kind;
    bool valid;
    uint32 ordinal;
    BlockNumber block;
    BlockNumber next;
    uint32 bytes;
    char content[page_capacity];
};

}  // namespace

struct DeltaReader {
    Relation index;
    MetaPage meta;
    uint32 log;
    uint64 segment_id;
    uint32 vector_bytes;     // of every dense row
    uint32 attribute_bytes;  // behind every row
    uint32 most_bytes;       // of a value
    bool has_included;
    char* value;           // the last value read
    uint32 fixed;          // bytes of the last value before its included tuple
    uint32 length;         // of the last value
    StoredRowSpace space;  // of the last row
    BufferAccessStrategy strategy;
    LogHead head;
    uint64 next;
    uint64 end;
    ReadResult result;
    PageCopy entries;
    PageCopy values;
};

// Whether the last page of a stream was moved after the reader began. The reader's page before it still links to the
// old block.
static bool has_moved(const DeltaReader* reader)
{
    const LogHead head = read_log_head(reader->index, reader->meta, reader->log);
    return head.entries.moved.block != reader->head.entries.moved.block ||
           head.values.moved.block != reader->head.values.moved.block;
}

// Load the page of this ordinal, by the link from the page before it if that is loaded. False when the page is gone.
static bool load_page(DeltaReader* reader, PageCopy* copy, uint32 ordinal)
{
    if (copy->valid && copy->ordinal == ordinal) return true;
    const BlockNumber block =
        copy->valid && copy->ordinal + 1 == ordinal
            ? copy->next
            : find_stream_page(reader->index, reader->meta, reader->log, copy->kind, reader->head, ordinal);
    CHECK_FOR_INTERRUPTS();
    const Buffer buffer = try_read_page(reader->index, block, copy->kind, reader->segment_id, ordinal,
                                        BUFFER_LOCK_SHARE, reader->strategy);
    if (!BufferIsValid(buffer)) {
        reader->result =
            has_moved(reader) ? ReadResult::recycled : unexpected_log_page(reader->index, reader->meta, block);
        return false;
    }
    Page page = BufferGetPage(buffer);
    copy->valid = true;
    copy->ordinal = ordinal;
    copy->block = block;
    copy->next = page_trailer(page)->next;
    copy->bytes = page_content_bytes(page);
    memcpy(copy->content, page_content(page), copy->bytes);
    UnlockReleaseBuffer(buffer);
    return true;
}

DeltaReader* begin_delta_read(Relation index, const MetaPage& meta, uint32 log, uint64 first, uint64 end)
{
    DeltaReader* reader = static_cast<DeltaReader*>(palloc0(sizeof(DeltaReader)));
    reader->index = index;
    reader->meta = meta;
    reader->log = log;
    reader->result = ReadResult::done;
    reader->segment_id = log_segment_id(meta, log);
    reader->vector_bytes = stored_value_bytes(meta.shape);
    reader->attribute_bytes = meta.shape.attribute_count * static_cast<uint32>(sizeof(uint64));
    reader->has_included = has_included_columns(index);
    reader->most_bytes = most_stored_bytes(meta.shape) + (reader->has_included ? max_included_bytes : 0);
    reader->head = read_log_head(index, meta, log);
    reader->next = first;
    reader->end = Min(end, reader->head.entry_end);
    reader->entries.kind = PageKind::log_entries;
    reader->values.kind = PageKind::log_values;
    if (first < reader->end) {
        reader->strategy = bulk_read_strategy((reader->end - first) * reader->vector_bytes / page_capacity);
    }
    return reader;
}

// Collect the value's bytes from its pages. The reader's end was read before any page, so a copied page has all bytes
// up to that end. False when a page is gone.
static bool read_value(DeltaReader* reader, const DeltaEntry& entry, char* out)
{
    if (entry.value_position > reader->head.value_end || entry.length > reader->head.value_end - entry.value_position) {
        report_corruption(reader->index, reader->entries.block, "a delta entry has an impossible value");
    }
    uint32 filled = 0;
    while (filled < entry.length) {
        const uint64 position = entry.value_position + filled;
        const uint32 within = static_cast<uint32>(position % page_capacity);
        if (!load_page(reader, &reader->values, static_cast<uint32>(position / page_capacity))) return false;
        const uint32 piece = Min(entry.length - filled, page_capacity - within);
        if (within + piece > reader->values.bytes) {
            report_corruption(reader->index, reader->values.block, "a value page is too short");
        }
        memcpy(out + filled, reader->values.content + within, piece);
        filled += piece;
    }
    if (bytes_crc(out, entry.length) != entry.value_crc) {
        report_corruption(reader->index, reader->values.block, "the checksum of a delta value does not match");
    }
    return true;
}

bool next_delta(DeltaReader* reader, DeltaEntry* entry)
{
    if (reader->next >= reader->end) return false;
    if (!load_page(reader, &reader->entries, static_cast<uint32>(reader->next / entries_per_page))) return false;
    const uint32 within = static_cast<uint32>(reader->next % entries_per_page * sizeof(DeltaEntry));
    if (within + sizeof(DeltaEntry) > reader->entries.bytes) {
        report_corruption(reader->index, reader->entries.block, "an entry page is too short");
    }
    memcpy(entry, reader->entries.content + within, sizeof(*entry));
    check_entry(reader->index, reader->entries.block, *entry);
    reader->next++;
    reader->length = 0;
    return true;
}

// The length of an entry's row. Raises an error when the entry's lengths are impossible.
static uint32 check_lengths(DeltaReader* reader, const DeltaEntry& entry)
{
    const bool listed = is_list(reader->meta.shape.element);
    const uint32 row_bytes = listed ? entry.row_bytes : reader->vector_bytes;
    const bool possible = listed ? is_list_length(reader->meta.shape, row_bytes) : entry.row_bytes == 0;
    reader->fixed = possible ? row_bytes + reader->attribute_bytes : 0;
    if (!possible || entry.length > reader->most_bytes || entry.length < reader->fixed ||
        (entry.length > reader->fixed) != reader->has_included) {
        report_corruption(reader->index, reader->entries.block, "a delta entry has an impossible value");
    }
    return row_bytes;
}

bool next_delta_row(DeltaReader* reader, DeltaEntry* entry, RowView* row)
{
    if (!next_delta(reader, entry)) return false;
    const uint32 row_bytes = check_lengths(reader, *entry);
    const IndexShape& shape = reader->meta.shape;
    const bool dense = !is_list(shape.element);
    if (reader->value == nullptr) {
        reader->value = static_cast<char*>(palloc(reader->most_bytes));
        reader->space = make_row_space(shape);
    }
    if (!read_value(reader, *entry, reader->value)) return false;
    *row = view_stored_row(shape, reader->value, row_bytes, &reader->space);
    reader->length = entry->length;
    const char* fault = dense ? nullptr : lists_fault(*row, shape);
    if (fault != nullptr) report_corruption(reader->index, reader->entries.block, fault);
    return true;
}

bool next_delta_attributes(DeltaReader* reader, DeltaEntry* entry, uint64* attributes)
{
    if (!next_delta(reader, entry)) return false;
    if (entry->length != reader->attribute_bytes || entry->row_bytes != 0) {
        report_corruption(reader->index, reader->entries.block, "a delta entry has an impossible value");
    }
    return read_value(reader, *entry, reinterpret_cast<char*>(attributes));
}

const char* delta_stored_value(const DeltaReader* reader)
{
    return reader->value;
}

const char* delta_included(const DeltaReader* reader, uint32* length)
{
    *length = reader->length > reader->fixed ? reader->length - reader->fixed : 0;
    return *length > 0 ? reader->value + reader->fixed : nullptr;
}

ReadResult end_delta_read(DeltaReader* reader)
{
    const ReadResult result = reader->result;
    if (reader->value != nullptr) pfree(reader->value);
    free_row_space(&reader->space);
    if (reader->strategy != nullptr) FreeAccessStrategy(reader->strategy);
    pfree(reader);
    return result;
}

// The page of a stream that holds this position, or the tail if that page does not exist yet.
static StreamStart stream_start(Relation index, const MetaPage& meta, uint32 log, PageKind kind, const LogHead& head,
                                uint64 page)
{
    const LogStream& stream = kind == PageKind::log_entries ? head.entries : head.values;
    const uint32 ordinal = static_cast<uint32>(Min(page, static_cast<uint64>(stream.tail_ordinal)));
    const BlockNumber block = find_stream_page(index, meta, log, kind, head, ordinal);
    if (block == InvalidBlockNumber) unexpected_log_page(index, meta, meta.logs[log].head);
    return {block, ordinal};
}

LogStart move_log_start(Relation index, const MetaPage& meta, uint32 log, uint64 first)
{
    LogStart moved = meta.logs[log];
    const LogHead head = read_log_head(index, meta, log);
    uint64 value_position = head.value_end;
    if (first < head.entry_end) {
        DeltaReader* reader = begin_delta_read(index, meta, log, first, first + 1);
        DeltaEntry entry;
        if (next_delta(reader, &entry)) value_position = entry.value_position;
        end_delta_read(reader);
    }
    moved.start = first;
    moved.entries = stream_start(index, meta, log, PageKind::log_entries, head, first / entries_per_page);
    moved.values = stream_start(index, meta, log, PageKind::log_values, head, value_position / page_capacity);
    return moved;
}

}  // namespace pgwarp
