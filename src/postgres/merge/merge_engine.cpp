// The engine's part of a merge: encoding the rows of the logs, or building with all rows.
#include "postgres/am/index_options.h"
#include "postgres/merge/merge_run.h"
#include "postgres/merge/stored_vectors.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

void send_row(void* sink, Tid tid, const RowView& row)
{
    add_row(static_cast<RowSink*>(sink), tid, row);
}

bool is_array_of_rows(const MergeRun* merge, const char* name)
{
    return is_row_array(*merge->method, name) || is_list_array(*merge->method, name);
}

// Send the arrays that the engine needs to encode rows: quantizers, or all rows of a method that links new rows with
// them.
void give_arrays(MergeRun* merge)
{
    for (uint32 i = 0; i < merge->directory->array_count; ++i) {
        const StoredArray& array = merge->directory->arrays[i];
        if (is_shared_array(array.shape.name)) continue;
        if (is_array_of_rows(merge, array.shape.name) && !merge->method->links_rows) continue;
        give_stored_array(&merge->build, merge->index, *merge->directory, array);
    }
}

// Tell the engine whether to leave out dead rows with links, and whether to measure recall.
void ask_for_links(MergeRun* merge)
{
    if (!merge->method->links_rows) return;
    ParameterList* options = &merge->build.options;
    if (merge->kind == MergeKind::compact) options->set(option_leave_out, 1);
    if (wants_recall(merge)) options->set(option_measure, 1);
}

void give_dead_rows(const MergeRun* merge)
{
    if (!merge->method->links_rows || merge->counts.dead_rows == 0) return;
    const ArrayShape shape = make_array_shape(array_dead_rows, ArrayType::u64, (merge->counts.rows + 63) / 64, 1);
    give_made_array(&merge->build, shape, merge->dead);
}

void note_array(void* state, const void* piece, uint64 length)
{
    merge_delay_point();
    write_array(static_cast<ArrayWriter*>(state), piece, length);
}

}  // namespace

void read_stored(Relation index, const Directory& directory, const StoredArray& array, uint64 offset, uint64 length,
                 void* out)
{
    if (read_array(index, directory, array, offset, length, out) == ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(index));
    }
}

void give_stored_array(const EngineBuild* build, Relation index, const Directory& directory, const StoredArray& array,
                       const char* phase)
{
    auto* piece = static_cast<char*>(palloc(chunk_bytes));
    const uint64 bytes = array.shape.bytes();
    for (uint64 offset = 0; offset < bytes; offset += chunk_bytes) {
        merge_delay_point();
        if (phase != nullptr) report_merge(phase, offset, bytes);
        const uint64 length = Min(uint64{chunk_bytes}, bytes - offset);
        read_stored(index, directory, array, offset, length, piece);
        give_array(build, array.shape, offset, piece, length);
    }
    pfree(piece);
}

void give_made_array(const EngineBuild* build, const ArrayShape& shape, const void* bytes)
{
    for (uint64 offset = 0; offset < shape.bytes(); offset += chunk_bytes) {
        const uint64 length = Min(uint64{chunk_bytes}, shape.bytes() - offset);
        give_array(build, shape, offset, static_cast<const char*>(bytes) + offset, length);
    }
}

bool is_shared_array(const char* name)
{
    return strcmp(name, array_tid_block) == 0 || strcmp(name, array_tid_offset) == 0 ||
           strcmp(name, array_attributes) == 0;
}

void run_in_engine(MergeRun* merge)
{
    const bool whole = merge->kind == MergeKind::rebuild;
    EngineBuild* build = &merge->build;
    build->kind = whole ? BuildKind::whole : BuildKind::extend;
    build->shape = merge->meta.shape;
    build->options = whole ? index_build_options(merge->index, merge->meta.shape) : merge->directory->options;
    build->expected_rows = static_cast<double>(whole ? merge->counts.live() : merge->new_rows());
    if (!whole) ask_for_links(merge);
    begin_engine_build(build);
    if (!whole) give_arrays(merge);
    if (!whole) give_dead_rows(merge);
    RowSink* sink = open_row_sink(build->token, build->shape);
    if (whole) visit_stored_rows(merge, send_row, sink);
    visit_delta(merge, send_row, sink);
    close_row_sink(sink);
    merge->built = run_engine_build(build);
    const uint64 expected = whole ? merge->counts.live() : merge->new_rows();
    if (merge->built->rows != expected) elog(ERROR, "pgwarp-engine encoded another number of rows than it got");
    if (!whole && merge->method->links_rows) keep_recall(merge);
    merge->buffer = lease_transfer_buffer(BufferPurpose::bulk);
}

const ArrayShape* find_built(const MergeRun* merge, const char* name, uint32* number)
{
    if (merge->built == nullptr) return nullptr;
    const auto* shapes = reinterpret_cast<const ArrayShape*>(merge->built + 1);
    for (uint32 i = 0; i < merge->built->array_count; ++i) {
        if (strncmp(shapes[i].name, name, sizeof(shapes[i].name)) != 0) continue;
        *number = i;
        return &shapes[i];
    }
    return nullptr;
}

void copy_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape, ArrayWriter* writer)
{
    report_merge("writing pages", number, merge->built->array_count);
    read_built_array(&merge->build, number, shape.bytes(), &merge->buffer, note_array, writer);
}

}  // namespace pgwarp
