// Checks the pages of an index by its metapage and directory.
#include "postgres/am/methods.h"
#include "postgres/check/check.h"
#include "postgres/check/link_structure.h"
#include "postgres/check/list_structure.h"
#include "postgres/merge/merge_run.h"
#include "postgres/storage/array_stream.h"
#include "postgres/storage/delta_pages.h"
#include "postgres/storage/included_tuple.h"
#include "postgres/storage/unplaced.h"

namespace pgwarp
{

namespace
{

// Check that no array occurs twice, that arrays of rows have a row for each row of the index, and that addresses and
// included columns are there.
void check_shapes(const IndexCheck& check)
{
    const Directory& directory = *check.directory;
    const MethodDescription& method = access_method_of(check.index);
    if (check.meta.shape.method != method.method) {
        report_corruption(check.index, metapage_block, "the index is one of another access method");
    }
    int addresses = 0;
    for (uint32 i = 0; i < directory.array_count; ++i) {
        const ArrayShape& shape = directory.arrays[i].shape;
        if (is_row_array(method, shape.name) && shape.rows != directory.rows) {
            report_corruption(check.index, check.meta.directory_block, "an array has another number of rows");
        }
        if (strcmp(shape.name, array_tid_block) == 0 || strcmp(shape.name, array_tid_offset) == 0) ++addresses;
        for (uint32 other = 0; other < i; ++other) {
            if (strcmp(directory.arrays[other].shape.name, shape.name) == 0) {
                report_corruption(check.index, check.meta.directory_block, "an array is there twice");
            }
        }
    }
    if (directory.rows > 0 && addresses != 2) {
        report_corruption(check.index, check.meta.directory_block, "the index has no heap addresses");
    }
    if ((directory.included.shape.rows > 0) != (directory.rows > 0 && has_included_columns(check.index))) {
        report_corruption(check.index, check.meta.directory_block, "the index lacks the included columns, or has none");
    }
}

// Check every page and every checksum of an array.
bool check_array(const IndexCheck& check, const Segment& segment, const StoredArray& array, char* piece)
{
    for (uint64 offset = 0; offset < array.shape.bytes(); offset += chunk_bytes) {
        CHECK_FOR_INTERRUPTS();
        const uint64 length = Min(uint64{chunk_bytes}, array.shape.bytes() - offset);
        if (read_array(check.index, segment, array, offset, length, piece) == ReadResult::recycled) {
            return false;
        }
    }
    return true;
}

bool check_arrays(const IndexCheck& check)
{
    auto* piece = static_cast<char*>(palloc(chunk_bytes));
    const Directory& directory = *check.directory;
    for (uint32 i = 0; i < directory.array_count; ++i) {
        if (!check_array(check, directory, directory.arrays[i], piece)) return false;
    }
    const bool whole = check_array(check, directory, directory.included, piece) &&
                       check_array(check, directory, directory.included_at, piece) &&
                       check_array(check, directory.unplaced, directory.unplaced.attributes, piece);
    pfree(piece);
    return whole;
}

// Check that each row, also a dead one, has its own included tuple.
bool check_included(const IndexCheck& check)
{
    constexpr uint64 step = chunk_bytes / sizeof(uint32);
    const Directory& directory = *check.directory;
    if (directory.included.shape.rows == 0) return true;
    const StoredArray& blocks_array = *find_array(directory, array_tid_block);
    const StoredArray& offsets_array = *find_array(directory, array_tid_offset);
    auto* blocks = static_cast<uint32*>(palloc(sizeof(uint32) * step));
    auto* offsets = static_cast<uint16*>(palloc(sizeof(uint16) * step));
    auto* tuple = static_cast<char*>(palloc(max_included_bytes));
    bool same = true;
    for (uint64 first = 0; first < directory.rows && same; first += step) {
        const uint64 count = Min(step, directory.rows - first);
        same = read_array(check.index, directory, blocks_array, first * sizeof(uint32), count * sizeof(uint32),
                          blocks) == ReadResult::done &&
               read_array(check.index, directory, offsets_array, first * sizeof(uint16), count * sizeof(uint16),
                          offsets) == ReadResult::done;
        for (uint64 i = 0; i < count && same; ++i) {
            same = read_included_row(check.index, directory, first + i, {blocks[i], offsets[i], 0}, tuple);
        }
    }
    pfree(tuple);
    pfree(offsets);
    pfree(blocks);
    return same;
}

// Check that links lead to rows, and reach every live row.
bool check_links(const IndexCheck& check)
{
    LinkFault fault;
    const uint64* dead = read_row_tombstones(check.index, *check.directory);
    if (dead == nullptr) return false;
    if (find_link_fault(check.index, *check.directory, dead, &fault) == ReadResult::recycled) return false;
    if (fault.what != nullptr) report_corruption(check.index, fault.block, fault.what);
    return true;
}

// Check that the keys of unplaced rows ascend, and that their kinds are known.
bool check_unplaced(const IndexCheck& check)
{
    constexpr uint64 step = chunk_bytes / sizeof(uint64);
    const UnplacedSegment& segment = check.directory->unplaced;
    auto* keys = static_cast<uint64*>(palloc(sizeof(uint64) * step));
    uint64 last = 0;
    for (uint64 first = 0; first < segment.rows; first += step) {
        CHECK_FOR_INTERRUPTS();
        const uint64 count = Min(step, segment.rows - first);
        if (read_array(check.index, segment, segment.keys, first * sizeof(uint64), count * sizeof(uint64), keys) ==
            ReadResult::recycled)
            return false;
        for (uint64 i = 0; i < count; ++i) {
            if (keys[i] <= last || unplaced_row(keys[i]).kind > UnplacedKind::null) {
                report_corruption(check.index,
                                  array_page_block(segment.keys, (first + i) * sizeof(uint64) / page_capacity),
                                  "the unplaced rows are out of order");
            }
            last = keys[i];
        }
    }
    pfree(keys);
    return true;
}

// Check that no bit is set past the last row.
bool check_tombstones(const IndexCheck& check, const Segment& segment)
{
    const uint64 rows = segment.rows;
    const uint64* bitmap = read_row_tombstones(check.index, segment);
    if (bitmap == nullptr) return false;
    if (rows % 64 != 0 && bitmap[rows / 64] >> (rows % 64) != 0) {
        report_corruption(check.index, check.meta.directory_block, "a tombstone lies past the last row");
    }
    return true;
}

// Check every entry and every value of the logs, and their page tables.
bool check_logs(const IndexCheck& check)
{
    auto* samples = static_cast<LogSamples*>(palloc(sizeof(LogSamples)));
    for (uint32 log = 0; log < delta_log_count; ++log) {
        read_log_samples(check.index, check.meta, log, read_log_head(check.index, check.meta, log), samples);
        DeltaReader* reader =
            begin_delta_read(check.index, check.meta, log, check.meta.logs[log].start, check.ends[log]);
        DeltaEntry entry;
        RowView row;
        while (next_delta_row(reader, &entry, &row)) {
            uint32 bytes = 0;
            const char* included = delta_included(reader, &bytes);
            if (included != nullptr && !included_is_intact(included, bytes, {entry.block, entry.offset, 0})) {
                report_corruption(check.index, check.meta.logs[log].head,
                                  "the checksum of an included tuple of its log does not match");
            }
        }
        if (end_delta_read(reader) == ReadResult::recycled) return false;
    }
    if (keeps_unplaced(check.meta)) {
        const LogHead head = read_log_head(check.index, check.meta, unplaced_log);
        read_log_samples(check.index, check.meta, unplaced_log, head, samples);
    }
    pfree(samples);
    return true;
}

}  // namespace

bool check_structure(IndexCheck* check)
{
    check->meta = read_metapage(check->index);
    check->directory = read_directory(check->index, check->meta);
    if (check->directory == nullptr) return false;
    read_delta_ends(check->index, check->meta, check->ends);
    check->unplaced_end = read_unplaced_end(check->index, check->meta);
    check_shapes(*check);
    if (!check_arrays(*check) || !check_lists(*check) || !check_included(*check) || !check_links(*check)) return false;
    if (!check_unplaced(*check) || !check_logs(*check)) return false;
    if (!check_tombstones(*check, *check->directory) || !check_tombstones(*check, check->directory->unplaced)) {
        return false;
    }
    RowCounts unplaced;
    if (count_rows(check->index, check->meta, *check->directory, check->ends, &check->counts) == ReadResult::recycled ||
        count_unplaced_rows(check->index, check->meta, *check->directory, check->unplaced_end, &unplaced) ==
            ReadResult::recycled) {
        return false;
    }
    check->counts = check->counts + unplaced;
    // On a standby a page may get another use between two reads. Then the generation has changed too, so the map is
    // not strict.
    check->pages = map_pages(check->index, check->meta, *check->directory, !RecoveryInProgress());
    return read_metapage(check->index).generation == check->meta.generation;
}

}  // namespace pgwarp
