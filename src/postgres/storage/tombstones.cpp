// Sweeps bitmaps and logs for dead rows, and counts rows.
#include "postgres/storage/tombstones.h"

#include "postgres/storage/array_stream.h"
#include "postgres/storage/delta_pages.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/unplaced_row.h"

extern "C" {
#include "commands/vacuum.h"
#include "port/pg_bitutils.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 rows_per_page = page_capacity / 8 * 64;  // bits of one bitmap page
static_assert(page_capacity % 8 == 0);
constexpr uint64 rows_per_step = chunk_bytes / sizeof(uint16);  // whole checksum chunks of arrays of addresses

struct Sweep {
    Relation index;
    const MetaPage* meta;
    const Directory* directory;
    IndexBulkDeleteCallback callback;
    void* callback_state;
    SweepCounts counts;
};

void delay_point()
{
#if PG_VERSION_NUM >= 180000
    vacuum_delay_point(false);
#else
    vacuum_delay_point();
#endif
}

void expect_done(Relation index, ReadResult result)
{
    if (result != ReadResult::done)
        elog(ERROR, "index \"%s\" was changed by another process during a sweep", RelationGetRelationName(index));
}

bool is_dead(Sweep* sweep, BlockNumber block, uint16 offset)
{
    ItemPointerData tid;
    ItemPointerSet(&tid, block, offset);
    return sweep->callback(&tid, sweep->callback_state);
}

// Set bits of one bitmap page. `dead` holds row numbers within the page.
void mark_rows(Sweep* sweep, const Segment& segment, uint64 ordinal, const uint32* dead, uint32 count)
{
    const BlockNumber block = array_page_block(segment.tombstones, ordinal);
    const Buffer buffer = read_page(sweep->index, block, PageKind::tombstones, segment.segment_id,
                                    static_cast<uint32>(ordinal), BUFFER_LOCK_EXCLUSIVE);
    if (!page_is_sealed(BufferGetPage(buffer))) {
        report_corruption(sweep->index, block, "the checksum of a page of tombstones does not match");
    }
    GenericXLogState* state = GenericXLogStart(sweep->index);
    Page page = GenericXLogRegisterBuffer(state, buffer, 0);
    uint64* words = reinterpret_cast<uint64*>(page_content(page));
    for (uint32 i = 0; i < count; ++i) words[dead[i] / 64] |= UINT64CONST(1) << (dead[i] % 64);
    seal_page(page);
    fault_point("bulkdelete: before rows are marked");
    GenericXLogFinish(state);
    UnlockReleaseBuffer(buffer);
    fault_point("bulkdelete: rows marked");
}

// Sweep rows [first, first + count) of one bitmap page, which have these tids.
void sweep_bitmap_page(Sweep* sweep, const Segment& segment, uint64 first, uint64 count, const Tid* tids,
                       const uint64* bitmap, uint32* dead)
{
    uint32 found = 0;
    const uint64 page_first = first / rows_per_page * rows_per_page;
    for (uint64 row = first; row < first + count; ++row) {
        if ((bitmap[row / 64] >> (row % 64)) & 1) continue;
        const Tid tid = tids[row - first];
        if (is_dead(sweep, tid.block, tid.offset)) {
            dead[found++] = static_cast<uint32>(row - page_first);
        } else {
            sweep->counts.live++;
        }
    }
    if (found == 0) return;
    mark_rows(sweep, segment, page_first / rows_per_page, dead, found);
    sweep->counts.removed += found;
}

// Reads the addresses of rows [first, first + count), at most rows_per_step.
using ReadTids = void (*)(Sweep* sweep, uint64 first, uint64 count, Tid* tids);

void read_placed_tids(Sweep* sweep, uint64 first, uint64 count, Tid* tids)
{
    const Directory& directory = *sweep->directory;
    const StoredArray* block_array = find_array(directory, array_tid_block);
    const StoredArray* offset_array = find_array(directory, array_tid_offset);
    if (block_array == nullptr || offset_array == nullptr ||
        block_array->shape.bytes() != directory.rows * sizeof(uint32) ||
        offset_array->shape.bytes() != directory.rows * sizeof(uint16)) {
        report_corruption(sweep->index, metapage_block, "the index has no heap addresses");
    }
    uint32* blocks = static_cast<uint32*>(palloc(count * sizeof(uint32)));
    uint16* offsets = static_cast<uint16*>(palloc(count * sizeof(uint16)));
    expect_done(sweep->index, read_array(sweep->index, directory, *block_array, first * sizeof(uint32),
                                         count * sizeof(uint32), blocks));
    expect_done(sweep->index, read_array(sweep->index, directory, *offset_array, first * sizeof(uint16),
                                         count * sizeof(uint16), offsets));
    for (uint64 i = 0; i < count; ++i) tids[i] = {blocks[i], offsets[i], 0};
    pfree(offsets);
    pfree(blocks);
}

void read_unplaced_tids(Sweep* sweep, uint64 first, uint64 count, Tid* tids)
{
    uint64* keys = static_cast<uint64*>(palloc(count * sizeof(uint64)));
    const UnplacedSegment& segment = sweep->directory->unplaced;
    expect_done(sweep->index,
                read_array(sweep->index, segment, segment.keys, first * sizeof(uint64), count * sizeof(uint64), keys));
    for (uint64 i = 0; i < count; ++i) tids[i] = unplaced_row(keys[i]).tid;
    pfree(keys);
}

void sweep_segment(Sweep* sweep, const Segment& segment, ReadTids read_tids)
{
    const uint64 rows = segment.rows;
    if (rows == 0) return;
    const uint64 step = Min(rows_per_step, rows);
    Tid* tids = static_cast<Tid*>(palloc(step * sizeof(Tid)));
    uint32* dead = static_cast<uint32*>(palloc(rows_per_page * sizeof(uint32)));
    uint64* bitmap = read_row_tombstones(sweep->index, segment);
    expect_done(sweep->index, bitmap != nullptr ? ReadResult::done : ReadResult::recycled);
    for (uint64 first = 0; first < rows; first += step) {
        const uint64 count = Min(step, rows - first);
        read_tids(sweep, first, count, tids);
        for (uint64 row = first; row < first + count;) {
            const uint64 page_end = Min((row / rows_per_page + 1) * rows_per_page, first + count);
            delay_point();
            sweep_bitmap_page(sweep, segment, row, page_end - row, tids + (row - first), bitmap, dead);
            row = page_end;
        }
    }
    pfree(bitmap);
    pfree(dead);
    pfree(tids);
}

// Flag the dead entries of one page, at positions [from, to) within it. Returns the next page's block.
BlockNumber sweep_entry_page(Sweep* sweep, uint64 segment_id, BlockNumber block, uint32 ordinal, uint32 from, uint32 to)
{
    DeltaEntry entries[entries_per_page];
    const Buffer buffer = read_page(sweep->index, block, PageKind::log_entries, segment_id, ordinal, BUFFER_LOCK_SHARE);
    if (page_content_bytes(BufferGetPage(buffer)) < to * sizeof(DeltaEntry)) {
        report_corruption(sweep->index, block, "an entry page is too short");
    }
    memcpy(entries, page_content(BufferGetPage(buffer)), to * sizeof(DeltaEntry));
    const BlockNumber next = page_trailer(BufferGetPage(buffer))->next;
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

    uint16 dead[entries_per_page];
    uint32 found = 0;
    for (uint32 i = from; i < to; ++i) {
        check_entry(sweep->index, block, entries[i]);
        if (entries[i].flags & delta_dead) continue;
        if (is_dead(sweep, entries[i].block, entries[i].offset)) {
            dead[found++] = static_cast<uint16>(i);
        } else {
            sweep->counts.live++;
        }
    }
    if (found > 0) {
        LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
        GenericXLogState* state = GenericXLogStart(sweep->index);
        DeltaEntry* stored = reinterpret_cast<DeltaEntry*>(page_content(GenericXLogRegisterBuffer(state, buffer, 0)));
        for (uint32 i = 0; i < found; ++i) {
            DeltaEntry* entry = &stored[dead[i]];
            entry->flags |= delta_dead;
            entry->crc = entry_crc(*entry);
        }
        fault_point("bulkdelete: before entries are marked");
        GenericXLogFinish(state);
        LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
        fault_point("bulkdelete: entries marked");
        sweep->counts.removed += found;
    }
    ReleaseBuffer(buffer);
    return next;
}

void sweep_log(Sweep* sweep, uint32 log)
{
    const LogHead head = read_log_head(sweep->index, *sweep->meta, log);
    const uint64 start = sweep->meta->logs[log].start;
    if (start >= head.entry_end) return;
    uint32 ordinal = static_cast<uint32>(start / entries_per_page);
    const uint64 segment_id = log_segment_id(*sweep->meta, log);
    BlockNumber block = find_stream_page(sweep->index, *sweep->meta, log, PageKind::log_entries, head, ordinal);
    for (uint64 at = start; at < head.entry_end; ++ordinal) {
        delay_point();
        const uint64 page_first = static_cast<uint64>(ordinal) * entries_per_page;
        const uint64 page_end = Min(page_first + entries_per_page, head.entry_end);
        block = sweep_entry_page(sweep, segment_id, block, ordinal, static_cast<uint32>(at - page_first),
                                 static_cast<uint32>(page_end - page_first));
        at = page_end;
    }
}

}  // namespace

SweepCounts sweep_dead_tids(Relation index, IndexBulkDeleteCallback callback, void* callback_state)
{
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp sweep", ALLOCSET_DEFAULT_SIZES);
    MemoryContext old = MemoryContextSwitchTo(context);
    const MetaPage meta = read_metapage(index);
    const Directory* directory = read_directory(index, meta);
    expect_done(index, directory != nullptr ? ReadResult::done : ReadResult::recycled);
    Sweep sweep = {index, &meta, directory, callback, callback_state, {0, 0}};
    sweep_segment(&sweep, *directory, read_placed_tids);
    sweep_segment(&sweep, directory->unplaced, read_unplaced_tids);
    for (uint32 log = 0; log < count_logs(meta); ++log) sweep_log(&sweep, log);
    fault_point("bulkdelete: before the version");
    bump_tombstone_version(index);
    fault_point("bulkdelete: version raised");
    MemoryContextSwitchTo(old);
    MemoryContextDelete(context);
    return sweep.counts;
}

static StoredArray write_zeros(ArrayWriter* writer, uint64 bytes)
{
    char zeros[page_capacity];
    memset(zeros, 0, sizeof(zeros));
    while (bytes > 0) {
        const uint64 piece = Min(bytes, static_cast<uint64>(sizeof(zeros)));
        write_array(writer, zeros, piece);
        bytes -= piece;
    }
    return end_array(writer);
}

StoredArray write_clean_bitmap(PageSource* pages, uint64 segment_id, uint64 rows)
{
    ArrayShape shape;
    memset(static_cast<void*>(&shape), 0, sizeof(shape));
    strlcpy(shape.name, "tombstones", sizeof(shape.name));
    shape.type = ArrayType::u64;
    shape.rows = (rows + 63) / 64;
    shape.width = 1;
    return write_zeros(begin_array(pages, PageKind::tombstones, segment_id, shape), shape.bytes());
}

StoredArray extend_bitmap(PageSource* pages, uint64 segment_id, const StoredArray& bitmap, uint64 rows,
                          uint64 more_rows)
{
    const uint64 words = (rows + more_rows + 63) / 64 - bitmap.shape.rows;
    return write_zeros(begin_append(pages, PageKind::tombstones, segment_id, bitmap, words), words * sizeof(uint64));
}

uint64* read_row_tombstones(Relation index, const Segment& segment)
{
    const uint64 bytes = (segment.rows + 63) / 64 * 8;
    uint64* bitmap = static_cast<uint64*>(MemoryContextAllocHuge(CurrentMemoryContext, Max(bytes, 8)));
    if (read_array(index, segment, segment.tombstones, 0, bytes, bitmap) == ReadResult::done) return bitmap;
    pfree(bitmap);
    return nullptr;
}

static ReadResult count_segment(Relation index, const Segment& segment, RowCounts* counts)
{
    *counts = {segment.rows, 0, 0, 0};
    uint64* bitmap = read_row_tombstones(index, segment);
    if (bitmap == nullptr) return ReadResult::recycled;
    for (uint64 i = 0; i < (segment.rows + 63) / 64; ++i) {
        counts->dead_rows += static_cast<uint64>(pg_popcount64(bitmap[i]));
    }
    pfree(bitmap);
    return ReadResult::done;
}

// Count the entries of a log, and its dead entries.
static ReadResult count_entries(Relation index, const MetaPage& meta, uint32 log, uint64 end, RowCounts* counts)
{
    DeltaReader* reader = begin_delta_read(index, meta, log, meta.logs[log].start, end);
    DeltaEntry entry;
    for (; next_delta(reader, &entry); ++counts->delta) {
        counts->dead_delta += (entry.flags & delta_dead) ? 1 : 0;
    }
    return end_delta_read(reader);
}

ReadResult count_rows(Relation index, const MetaPage& meta, const Directory& directory, const uint64* ends,
                      RowCounts* counts)
{
    ReadResult result = count_segment(index, directory, counts);
    for (uint32 log = 0; log < delta_log_count && result == ReadResult::done; ++log) {
        result = count_entries(index, meta, log, ends != nullptr ? ends[log] : PG_UINT64_MAX, counts);
    }
    return result;
}

ReadResult count_unplaced_rows(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                               RowCounts* counts)
{
    *counts = {};
    if (!keeps_unplaced(meta)) return ReadResult::done;
    const ReadResult result = count_segment(index, directory.unplaced, counts);
    return result == ReadResult::done ? count_entries(index, meta, unplaced_log, end, counts) : result;
}

}  // namespace pgwarp
