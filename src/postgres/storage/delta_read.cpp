// Reading delta logs in order.
#include "postgres/storage/checksum.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/delta_pages.h"

namespace pgwarp
{

namespace
{

// One page of a stream, copied.
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
    uint64 segment_id;
    uint32 value_bytes;  // of every value of this index
    BufferAccessStrategy strategy;
    LogHead head;
    uint64 next;
    uint64 end;
    PageCopy entries;
    PageCopy values;
};

// Load the page of this ordinal, by the link from the page before it where that is at hand.
static void load_page(DeltaReader* reader, PageCopy* copy, uint32 ordinal)
{
    if (copy->valid && copy->ordinal == ordinal) return;
    const BlockNumber block =
        copy->valid && copy->ordinal + 1 == ordinal
            ? copy->next
            : find_stream_page(reader->index, reader->segment_id, copy->kind, reader->head, ordinal);
    CHECK_FOR_INTERRUPTS();
    const Buffer buffer =
        read_page(reader->index, block, copy->kind, reader->segment_id, ordinal, BUFFER_LOCK_SHARE, reader->strategy);
    Page page = BufferGetPage(buffer);
    copy->valid = true;
    copy->ordinal = ordinal;
    copy->block = block;
    copy->next = page_trailer(page)->next;
    copy->bytes = page_content_bytes(page);
    memcpy(copy->content, page_content(page), copy->bytes);
    UnlockReleaseBuffer(buffer);
}

DeltaReader* begin_delta_read(Relation index, const MetaPage& meta, uint32 log, uint64 first, uint64 end)
{
    DeltaReader* reader = static_cast<DeltaReader*>(palloc0(sizeof(DeltaReader)));
    reader->index = index;
    reader->segment_id = log_segment_id(meta, log);
    reader->value_bytes = meta.shape.dimensions * static_cast<uint32>(sizeof(float));
    reader->head = read_log_head(index, meta, log);
    reader->next = first;
    reader->end = Min(end, reader->head.entry_end);
    reader->entries.kind = PageKind::log_entries;
    reader->values.kind = PageKind::log_values;
    if (first < reader->end) {
        reader->strategy = bulk_read_strategy((reader->end - first) * reader->value_bytes / page_capacity);
    }
    return reader;
}

// Collect the value's bytes from its pages. The reader's end was known before any page was read, so a page copied once
// has all that is asked of it.
static void read_value(DeltaReader* reader, const DeltaEntry& entry, char* out)
{
    if (entry.length != reader->value_bytes || entry.value_position > reader->head.value_end ||
        entry.length > reader->head.value_end - entry.value_position) {
        report_corruption(reader->index, reader->entries.block, "a delta entry has an impossible value");
    }
    uint32 filled = 0;
    while (filled < entry.length) {
        const uint64 position = entry.value_position + filled;
        const uint32 within = static_cast<uint32>(position % page_capacity);
        load_page(reader, &reader->values, static_cast<uint32>(position / page_capacity));
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
}

bool next_delta(DeltaReader* reader, DeltaEntry* entry, float* vector)
{
    if (reader->next >= reader->end) return false;
    load_page(reader, &reader->entries, static_cast<uint32>(reader->next / entries_per_page));
    const uint32 within = static_cast<uint32>(reader->next % entries_per_page * sizeof(DeltaEntry));
    if (within + sizeof(DeltaEntry) > reader->entries.bytes) {
        report_corruption(reader->index, reader->entries.block, "an entry page is too short");
    }
    memcpy(entry, reader->entries.content + within, sizeof(*entry));
    check_entry(reader->index, reader->entries.block, *entry);
    reader->next++;
    if (vector != nullptr) read_value(reader, *entry, reinterpret_cast<char*>(vector));
    return true;
}

void end_delta_read(DeltaReader* reader)
{
    if (reader->strategy != nullptr) FreeAccessStrategy(reader->strategy);
    pfree(reader);
}

}  // namespace pgwarp
