// The rows of a merge that need no engine: live rows of arrays, and rows of the logs that are stored unencoded.
#include "postgres/merge/merge_run.h"
#include "postgres/storage/stored_value.h"

namespace pgwarp
{

namespace
{

constexpr uint64 rows_between_delays = 256;

bool is_dead(const MergeRun* merge, uint64 row)
{
    return (merge->dead[row / 64] >> (row % 64)) & 1;
}

// Write the bytes of live rows in a piece of an array.
void write_live_bytes(const MergeRun* merge, uint64 row_bytes, uint64 offset, const char* piece, uint64 length,
                      ArrayWriter* writer)
{
    uint64 at = 0;
    uint64 kept_from = 0;
    while (at < length) {
        const uint64 row = (offset + at) / row_bytes;
        const uint64 row_end = Min((row + 1) * row_bytes - offset, length);
        if (is_dead(merge, row)) {
            if (at > kept_from) write_array(writer, piece + kept_from, at - kept_from);
            kept_from = row_end;
        }
        at = row_end;
    }
    if (at > kept_from) write_array(writer, piece + kept_from, at - kept_from);
}

// Visit the live rows of a log: visit(reader, entry).
template <class Visit>
void visit_log(MergeRun* merge, uint32 log, float* vector, Visit visit)
{
    DeltaReader* reader =
        begin_delta_read(merge->index, merge->meta, log, merge->meta.logs[log].start, merge->ends[log]);
    DeltaEntry entry;
    for (uint64 count = 0; next_delta(reader, &entry, vector); ++count) {
        if (count % rows_between_delays == 0) merge_delay_point();
        if ((entry.flags & delta_dead) == 0) visit(reader, entry);
    }
    if (end_delta_read(reader) == ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
    }
}

void write_block(void* writer, const DeltaEntry& entry, const float*)
{
    write_array(static_cast<ArrayWriter*>(writer), &entry.block, sizeof(entry.block));
}

void write_offset(void* writer, const DeltaEntry& entry, const float*)
{
    write_array(static_cast<ArrayWriter*>(writer), &entry.offset, sizeof(entry.offset));
}

// Write the vectors of the logs' rows in the stored form.
void write_vectors(MergeRun* merge, ArrayWriter* writer)
{
    const uint32 bytes = stored_value_bytes(merge->meta.shape);
    auto* vector = static_cast<float*>(palloc(sizeof(float) * merge->meta.shape.dimensions));
    for (uint32 log = 0; log < delta_log_count; ++log) {
        visit_log(merge, log, vector, [writer, bytes](const DeltaReader* reader, const DeltaEntry&) {
            write_array(writer, delta_stored_value(reader), bytes);
        });
    }
    pfree(vector);
}

}  // namespace

void visit_delta(MergeRun* merge, bool want_vectors, DeltaVisit visit, void* state)
{
    float* vector = want_vectors ? static_cast<float*>(palloc(sizeof(float) * merge->meta.shape.dimensions)) : nullptr;
    for (uint32 log = 0; log < delta_log_count; ++log) {
        visit_log(merge, log, vector,
                  [=](const DeltaReader*, const DeltaEntry& entry) { visit(state, entry, vector); });
    }
    if (vector != nullptr) pfree(vector);
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
        visit_delta(merge, false, write_block, writer);
    } else if (strcmp(array, array_tid_offset) == 0) {
        visit_delta(merge, false, write_offset, writer);
    } else {
        write_vectors(merge, writer);
    }
}

}  // namespace pgwarp
