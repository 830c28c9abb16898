// The rows of a merge that need no engine: live rows of arrays, and rows of the logs that are stored unencoded.
#include "postgres/merge/merge_run.h"
#include "postgres/storage/stored_value.h"

namespace pgwarp
{

namespace
{

// Write the bytes of live rows in a piece of an array.
void write_live_bytes(const MergeRun* merge, uint64 row_bytes, uint64 offset, const char* piece, uint64 length,
                      ArrayWriter* writer)
{
    uint64 at = 0;
    uint64 kept_from = 0;
    while (at < length) {
        const uint64 row = (offset + at) / row_bytes;
        const uint64 row_end = Min((row + 1) * row_bytes - offset, length);
        if (merge->row_is_dead(row)) {
            if (at > kept_from) write_array(writer, piece + kept_from, at - kept_from);
            kept_from = row_end;
        }
        at = row_end;
    }
    if (at > kept_from) write_array(writer, piece + kept_from, at - kept_from);
}

// Visit the live entries of the logs: next(reader, &entry) reads one, visit(reader, entry).
template <class Next, class Visit>
void visit_logs(MergeRun* merge, Next next, Visit visit)
{
    for (uint32 log = 0; log < delta_log_count; ++log) {
        DeltaReader* reader =
            begin_delta_read(merge->index, merge->meta, log, merge->meta.logs[log].start, merge->ends[log]);
        DeltaEntry entry;
        for (uint64 count = 0; next(reader, &entry); ++count) {
            if (count % rows_between_delays == 0) merge_delay_point();
            if ((entry.flags & delta_dead) == 0) visit(reader, entry);
        }
        if (end_delta_read(reader) == ReadResult::recycled) {
            elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
        }
    }
}

// Visit the live rows of the logs: visit(reader, entry, row).
template <class Visit>
void visit_rows(MergeRun* merge, Visit visit)
{
    RowView row;
    visit_logs(
        merge, [&row](DeltaReader* reader, DeltaEntry* entry) { return next_delta_row(reader, entry, &row); },
        [&row, visit](const DeltaReader* reader, const DeltaEntry& entry) { visit(reader, entry, row); });
}

void write_block(void* writer, const DeltaEntry& entry)
{
    write_array(static_cast<ArrayWriter*>(writer), &entry.block, sizeof(entry.block));
}

void write_offset(void* writer, const DeltaEntry& entry)
{
    write_array(static_cast<ArrayWriter*>(writer), &entry.offset, sizeof(entry.offset));
}

void write_attributes(void* writer, Tid, const RowView& row)
{
    write_array(static_cast<ArrayWriter*>(writer), row.attributes, sizeof(uint64) * row.attribute_count);
}

// Write the vectors of the logs' rows in the stored form.
void write_vectors(MergeRun* merge, ArrayWriter* writer)
{
    const uint32 bytes = stored_value_bytes(merge->meta.shape);
    visit_rows(merge, [writer, bytes](const DeltaReader* reader, const DeltaEntry&, const RowView&) {
        write_array(writer, delta_stored_value(reader), bytes);
    });
}

}  // namespace

void visit_delta_entries(MergeRun* merge, EntryVisit visit, void* state)
{
    visit_logs(merge, next_delta, [=](const DeltaReader*, const DeltaEntry& entry) { visit(state, entry); });
}

void visit_delta(MergeRun* merge, RowVisit visit, void* state)
{
    visit_rows(merge, [=](const DeltaReader*, const DeltaEntry& entry, const RowView& row) {
        visit(state, {entry.block, entry.offset, 0}, row);
    });
}

void copy_live_rows(MergeRun* merge, const StoredArray& array, ArrayWriter* writer)
{
    const uint64 bytes = array.shape.bytes();
    const uint64 row_bytes = array.shape.width * array_type_bytes(array.shape.type);
    auto* piece = static_cast<char*>(palloc(Min(bytes, uint64{chunk_bytes}) + 1));
    for (uint64 offset = 0; offset < bytes; offset += chunk_bytes) {
        merge_delay_point();
        report_merge("copying rows", offset, bytes);
        const uint64 length = Min(uint64{chunk_bytes}, bytes - offset);
        if (read_array(merge->index, *merge->directory, array, offset, length, piece) == ReadResult::recycled) {
            elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
        }
        write_live_bytes(merge, row_bytes, offset, piece, length, writer);
    }
    pfree(piece);
}

void write_delta_rows(MergeRun* merge, const char* array, ArrayWriter* writer)
{
    if (strcmp(array, array_tid_block) == 0) {
        visit_delta_entries(merge, write_block, writer);
    } else if (strcmp(array, array_tid_offset) == 0) {
        visit_delta_entries(merge, write_offset, writer);
    } else if (strcmp(array, array_attributes) == 0) {
        visit_delta(merge, write_attributes, writer);
    } else {
        write_vectors(merge, writer);
    }
}

}  // namespace pgwarp
