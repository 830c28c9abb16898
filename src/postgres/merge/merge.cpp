// The steps of a merge, from its plan to the switch of generations.
#include "postgres/merge/merge.h"

#include "numeric/metric.h"
#include "postgres/am/index_options.h"
#include "postgres/build/build_phases.h"
#include "postgres/client/connection.h"
#include "postgres/client/mirror_load.h"
#include "postgres/merge/merge_run.h"
#include "postgres/merge/stored_vectors.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/free_pages.h"
#include "postgres/storage/page_sweep.h"

extern "C" {
#include "commands/vacuum.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

constexpr BlockNumber worth_moving = 128;  // pages of a file below which free pages are left where they are
constexpr double free_share = 0.6;         // of the file's pages
constexpr double stream_share = 0.05;      // more rows than this share in the logs at a merge's end: more will come

struct HalfScale {
    float* values;
    uint64 bytes;
};

void keep_half_scale(void* state, const void* piece, uint64 length)
{
    auto* copied = static_cast<HalfScale*>(state);
    if (copied->bytes + length <= 2 * sizeof(float)) {
        memcpy(reinterpret_cast<char*>(copied->values) + copied->bytes, piece, length);
    }
    copied->bytes += length;
}

// Write the new rows of an array: encoded by the engine, or from the logs.
void write_new_rows(MergeRun* merge, const char* name, ArrayWriter* writer)
{
    if (merge->new_rows() == 0) return;
    uint32 number = 0;
    if (merge->built == nullptr) {
        write_delta_rows(merge, name, writer);
    } else if (const ArrayShape* built = find_built(merge, name, &number)) {
        copy_built_array(merge, number, *built, writer);
    } else {
        // The logs have the rows in another order than the engine.
        report_wrong(merge, "An array is missing.");
    }
}

// Copy an array that has no row for each row of the index.
void copy_whole_array(MergeRun* merge, const StoredArray& array, ArrayWriter* writer)
{
    auto* piece = static_cast<char*>(palloc(chunk_bytes));
    for (uint64 offset = 0; offset < array.shape.bytes(); offset += chunk_bytes) {
        merge_delay_point();
        const uint64 length = Min(uint64{chunk_bytes}, array.shape.bytes() - offset);
        if (read_array(merge->index, *merge->directory, array, offset, length, piece) == ReadResult::recycled) {
            elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
        }
        write_array(writer, piece, length);
    }
    pfree(piece);
}

// Add an array of scale and error of half vectors that were made of half vectors. Both errors add up; the old one
// counts twice when rows were normalised again.
void add_half_scale(MergeRun* merge, uint32 number, const ArrayShape& shape, float old_error)
{
    float scale[2] = {1, 0};
    HalfScale copied = {scale, 0};
    read_built_array(&merge->build, number, shape.bytes(), &merge->buffer, keep_half_scale, &copied);
    if (copied.bytes != sizeof(scale)) elog(ERROR, "the scale of half vectors has another length");
    const bool cosine = static_cast<Metric>(merge->meta.shape.metric) == Metric::cosine;
    scale[1] = static_cast<float>((scale[1] + (cosine ? 2.0 : 1.0) * old_error) * (1 + 1e-6));
    ArrayWriter* writer = begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape);
    write_array(writer, scale, sizeof(scale));
    add_array(merge, end_array(writer));
}

// Carry one array over into the next generation.
void carry_array(MergeRun* merge, const StoredArray& old)
{
    const bool compact = merge->kind == MergeKind::compact;
    const char* name = old.shape.name;
    ArrayShape shape = old.shape;
    uint32 number = 0;
    if (is_list_array(*merge->method, name)) {
        // Words and weights are written with the offsets.
        if (strcmp(name, array_name(*merge->method, ArrayRole::list_offsets)) == 0) carry_list_rows(merge);
        return;
    }
    if (merge->method->links_rows && merge->built != nullptr && carry_links(merge, old)) {
        // done
    } else if (is_row_array(*merge->method, name)) {
        shape.rows = merge->old_rows() + merge->new_rows();
        ArrayWriter* writer =
            compact ? begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape)
                    : begin_append(&merge->pages, PageKind::array, merge->next.segment_id, old, merge->new_rows());
        if (compact) copy_live_rows(merge, old, writer);
        write_new_rows(merge, name, writer);
        add_array(merge, end_array(writer));
    } else if (const ArrayShape* built = find_built(merge, name, &number)) {
        add_built_array(merge, number, *built);
    } else if (compact) {
        ArrayWriter* writer = begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape);
        copy_whole_array(merge, old, writer);
        add_array(merge, end_array(writer));
    } else {
        add_array(merge, old);
    }
    fault_point("merge: array written");
}

void add_first_array(MergeRun* merge, const char* name, ArrayType type, uint64 width)
{
    const ArrayShape shape = make_array_shape(name, type, merge->new_rows(), width);
    ArrayWriter* writer = begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape);
    write_delta_rows(merge, name, writer);
    add_array(merge, end_array(writer));
    fault_point("merge: array written");
}

// Begin the arrays of a method that stores rows as they come.
void add_first_arrays(MergeRun* merge)
{
    const IndexShape& shape = merge->meta.shape;
    add_first_array(merge, array_tid_block, ArrayType::u32, 1);
    add_first_array(merge, array_tid_offset, ArrayType::u16, 1);
    if (shape.attribute_count > 0) add_first_array(merge, array_attributes, ArrayType::u64, shape.attribute_count);
    if (is_list(shape.element)) {
        carry_list_rows(merge);
    } else {
        add_first_array(merge, array_name(*merge->method, ArrayRole::vectors), vector_array_type(shape),
                        shape.dimensions);
    }
}

// Carry all arrays over. An index without rows has none: if its method stores rows unencoded, they begin here.
void carry_arrays(MergeRun* merge)
{
    const Directory& directory = *merge->directory;
    for (uint32 i = 0; i < directory.array_count; ++i) {
        report_merge("writing rows", i, directory.array_count);
        carry_array(merge, directory.arrays[i]);
    }
    add_first_link_changes(merge);
    if (directory.array_count == 0) add_first_arrays(merge);
}

// Take all arrays from the engine. Rows that were half vectors before have the errors of both conversions.
void take_built_arrays(MergeRun* merge)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(merge->built + 1);
    const float old_error = merge->old_rows() > 0 ? stored_vector_error(merge->index, *merge->directory) : 0;
    for (uint32 i = 0; i < merge->built->array_count; ++i) {
        if (strcmp(shapes[i].name, array_half_scale) == 0 && old_error > 0) {
            add_half_scale(merge, i, shapes[i], old_error);
        } else {
            add_built_array(merge, i, shapes[i]);
        }
        fault_point("merge: array written");
    }
    merge->next.options = merge->built->options;
    merge->next.calibration = merge->built->calibration;
    merge->next.changed_rows = 0;
}

void write_bitmap(MergeRun* merge)
{
    Directory* next = &merge->next;
    if (merge->kind == MergeKind::unplaced) return;
    if (merge->kind == MergeKind::append) {
        next->tombstones = extend_bitmap(&merge->pages, next->segment_id, merge->directory->tombstones,
                                         merge->counts.rows, merge->new_rows());
    } else {
        next->tombstones = write_clean_bitmap(&merge->pages, next->segment_id, next->rows);
    }
    fault_point("merge: tombstones written");
}

// Begin the next generation with the fields that it shares with this one.
void begin_next(MergeRun* merge)
{
    const bool same_segment = merge->kind == MergeKind::append || merge->kind == MergeKind::unplaced;
    merge->next_meta = merge->meta;
    merge->next_meta.generation =
        merge->kind == MergeKind::unplaced ? next_generation(merge->meta.generation) : random_generation();
    merge->next = *merge->directory;
    merge->next.generation = merge->next_meta.generation;
    if (!same_segment) merge->next.segment_id = random_number64();
    merge->pages = merge_pages(merge->index, &merge->meta);
    if (merge->kind == MergeKind::unplaced) return;
    merge->next.rows = same_segment ? merge->counts.rows + merge->new_rows() : merge->counts.live();
    const uint64 left_out = same_segment ? 0 : merge->counts.dead_rows;
    const uint64 gone = merge->method->links_rows ? linked_dead_rows(merge) : left_out;
    merge->next.changed_rows =
        static_cast<uint32>(Min(merge->directory->changed_rows + merge->new_rows() + gone, max_rows));
    merge->next.array_count = 0;
    merge->next.arrays = static_cast<StoredArray*>(palloc0(max_arrays * sizeof(StoredArray)));
    if (merge->kind == MergeKind::clear) {
        merge->next.options = index_build_options(merge->index, merge->meta.shape);
        merge->next.calibration = Calibration();
        merge->next.trained_rows = 0;
        merge->next.changed_rows = 0;
    }
    if (merge->kind == MergeKind::rebuild) merge->next.trained_rows = static_cast<uint32>(merge->next.rows);
}

// Write the directory beside the old one, and switch. An engine that has the index loads the new rows before the
// switch; after a merge of unplaced rows alone its mirror stays.
void switch_generation(MergeRun* merge)
{
    for (uint32 log = 0; log < count_logs(merge->meta); ++log) {
        const uint64 end = log == unplaced_log ? merge->unplaced_end : merge->ends[log];
        merge->next_meta.logs[log] = move_log_start(merge->index, merge->meta, log, end);
    }
    write_directory(&merge->pages, merge->next, &merge->next_meta);
    fault_point("merge: directory written");
    close_pages(&merge->pages);
    const DirectoryState present = make_directory_state(merge->meta, merge->ends, merge->directory);
    DirectoryState next = make_directory_state(merge->next_meta, merge->ends, &merge->next);
    merge->loads_ahead = placed_generation(merge->next_meta.generation) != placed_generation(merge->meta.generation);
    merge->loads_ahead = merge->loads_ahead && begin_next_mirror(merge->index, present, &next);
    fault_point("merge: before the switch");
    switch_metapage(merge->index, merge->next_meta);
    fault_point("merge: after the switch");
    if (merge->loads_ahead) end_next_mirror(merge->index, next);
    merge->loads_ahead = false;
}

void run_merge(MergeRun* merge)
{
    begin_next(merge);
    if (needs_engine(merge)) run_in_engine(merge);
    if (merge->kind == MergeKind::rebuild) {
        take_built_arrays(merge);
    } else if (merge->kind != MergeKind::clear && merge->kind != MergeKind::unplaced) {
        carry_arrays(merge);
    }
    if (merge->kind != MergeKind::unplaced) carry_included(merge);
    write_bitmap(merge);
    carry_unplaced(merge);
    validate_merge(merge);
    if (merge->buffer.map != nullptr) return_transfer_buffer(&merge->buffer);
    if (merge->built != nullptr) end_engine_build(&merge->build);
    calibrate_merged(merge);
    fault_point("merge: calibrated");
    switch_generation(merge);
}

// Run the planned merge. When it fails, the engine must free its build.
void run_or_abandon(MergeRun* merge)
{
    PG_TRY();
    {
        run_merge(merge);
    }
    PG_CATCH();
    {
        abandon_engine_build(&merge->build);
        // The engine drops the unfinished load when the connection closes.
        if (merge->loads_ahead) close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
}

// Merge a part of the logs, and find the pages that became free. True when more steps are needed.
bool merge_step(Relation index, MergeReason reason, const uint64* goal, MergeOutcome* outcome)
{
    auto* merge = static_cast<MergeRun*>(palloc0(sizeof(MergeRun)));
    merge->index = index;
    merge->reason = reason;
    merge->method = &access_method_of(index);
    plan_merge(merge, goal);
    if (merge->kind != MergeKind::none) {
        run_or_abandon(merge);
        outcome->kind = merge->kind;
        outcome->merged += merge->merged_rows();
    }
    sweep_pages(index, reason == MergeReason::room);
    fault_point("merge: swept");
    const bool rebuilds =
        merge->kind != MergeKind::rebuild && merge->method->links_rows && recall_has_dropped(merge->next);
    return (merge->more || rebuilds) && merge->kind != MergeKind::none;
}

// Whether the index should move to the front of its file: most of the file is free pages that pages in use follow, and
// the logs hold few rows. During a stream of inserts the free pages would soon be used anyway.
bool lies_behind_free_pages(Relation index)
{
    const MetaPage meta = read_metapage(index);
    const BlockNumber blocks = RelationGetNumberOfBlocks(index);
    if (blocks < worth_moving) return false;
    if (static_cast<double>(count_inner_free_pages(index, meta, blocks)) < free_share * blocks) return false;
    uint64 ends[delta_log_count];
    read_delta_ends(index, meta, ends);
    uint64 entries = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) entries += ends[log] - meta.logs[log].start;
    const Directory* directory = read_directory(index, meta);
    return directory != nullptr && static_cast<double>(entries) <= stream_share * directory->rows;
}

const char* name_of(MergeKind kind)
{
    switch (kind) {
        case MergeKind::append:
            return "appended";
        case MergeKind::compact:
            return "written anew without dead rows";
        case MergeKind::rebuild:
            return "built anew";
        case MergeKind::clear:
            return "emptied";
        case MergeKind::unplaced:
            return "given its rows without a distance";
        default:
            return "left as it was";
    }
}

}  // namespace

void add_array(MergeRun* merge, const StoredArray& array)
{
    if (merge->next.array_count == max_arrays) elog(ERROR, "an index cannot have more than %u arrays", max_arrays);
    merge->next.arrays[merge->next.array_count++] = array;
}

void add_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape)
{
    ArrayWriter* writer = begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape);
    copy_built_array(merge, number, shape, writer);
    add_array(merge, end_array(writer));
}

void merge_delay_point()
{
    // A catalog snapshot would hold back the removal of dead rows by VACUUM in every table.
    InvalidateCatalogSnapshotConditionally();
#if PG_VERSION_NUM >= 180000
    vacuum_delay_point(false);
#else
    vacuum_delay_point();
#endif
}

void report_merge(const char* phase, uint64 done, uint64 total)
{
    report_build_phase(phase, done, total);
}

MergeOutcome merge_index(Relation index, MergeReason reason)
{
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp merge", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(context);
    uint64 goal[delta_log_count];
    read_delta_ends(index, read_metapage(index), goal);
    MergeOutcome outcome = {};
    while (merge_step(index, reason, goal, &outcome)) MemoryContextReset(context);
    // A move that no merge came before is worth no warning where there is no engine.
    char* why = nullptr;
    if (lies_behind_free_pages(index) && (outcome.kind != MergeKind::none || try_open_engine(&why))) {
        MergeOutcome moved = {};
        move_log_tails(index, read_metapage(index));
        read_delta_ends(index, read_metapage(index), goal);
        merge_step(index, MergeReason::room, goal, &moved);
        outcome.merged += moved.merged;
        if (outcome.kind == MergeKind::none) outcome.kind = moved.kind;
    }
    if (reason == MergeReason::asked || outcome.kind != MergeKind::none) {
        ereport(DEBUG1, (errmsg("index \"%s\" was %s: " UINT64_FORMAT " rows merged", RelationGetRelationName(index),
                                name_of(outcome.kind), outcome.merged)));
    }
    MemoryContextSwitchTo(outer);
    MemoryContextDelete(context);
    return outcome;
}

}  // namespace pgwarp
