// The recall of the next generation. It is measured again when many rows have come or gone, because in a larger index
// the neighbours of a row spread over more lists. For linked rows the engine measures recall while it links them, and a
// recall that has dropped is a reason to build again.
#include <cmath>

#include "numeric/hash.h"
#include "postgres/client/request.h"
#include "postgres/merge/merge.h"
#include "postgres/merge/merge_run.h"
#include "postgres/merge/stored_vectors.h"
#include "postgres/storage/array_role.h"
#include "protocol/calibration.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

constexpr uint64 changed_part = 4;      // part of the rows that must have come or gone since the last measurement
constexpr double judged_recall = 0.95;  // recall of the ten nearest by which effort is compared
constexpr double most_effort = 1.5;     // factor of the effort after a build above which the index is built again
constexpr uint32 judged_column = 1;     // column of Calibration::ks
static_assert(Calibration::ks[judged_column] == 10);

// The effort at which the curve reaches judged_recall, interpolated between two measurements; 0 when it never does.
double needed_effort(const Calibration& calibration)
{
    for (uint32 i = 0; i < calibration.count; ++i) {
        const CalibrationPoint& point = calibration.points[i];
        const double recall = point.recall[judged_column];
        if (recall < judged_recall) continue;
        const auto effort = static_cast<double>(point.effort);
        if (i == 0) return effort;
        const CalibrationPoint& before = calibration.points[i - 1];
        const double rise = recall - before.recall[judged_column];
        const double share = rise > 0 ? (judged_recall - before.recall[judged_column]) / rise : 1;
        return static_cast<double>(before.effort) * pow(effort / static_cast<double>(before.effort), share);
    }
    return 0;
}

// Whether enough rows have come or gone since the last measurement for another one.
bool is_outdated(const Directory& next)
{
    return next.changed_rows > next.rows / changed_part;
}

// The array by which rows can be compared: vectors, half vectors, or codes with scales; null when the index has none.
const StoredArray* kept_rows(const MethodDescription& method, const Directory& directory)
{
    for (const ArrayRole role : {ArrayRole::vectors, ArrayRole::half_vectors}) {
        if (const StoredArray* rows = find_array(directory, method, role)) return rows;
    }
    if (find_array(directory, method, ArrayRole::code_scales) == nullptr) return nullptr;
    return find_array(directory, method, ArrayRole::codes);
}

// Whether the rows are lists with codes, which are compared by both.
bool keeps_coded_lists(const MethodDescription& method, const Directory& directory)
{
    return find_array(directory, method, ArrayRole::codes) != nullptr &&
           find_array(directory, method, ArrayRole::list_offsets) != nullptr &&
           find_array(directory, method, ArrayRole::list_words) != nullptr;
}

bool is_dead(const MergeRun* merge, uint64 row)
{
    // A compaction leaves no dead rows, and rows from the logs are alive.
    if (merge->kind != MergeKind::append || row >= merge->counts.rows) return false;
    return merge->row_is_dead(row);
}

// Choose one live row of each stretch of the index.
uint32 choose_queries(const MergeRun* merge, uint32* rows)
{
    const uint64 all = merge->next.rows;
    const uint64 stretches = Min(uint64{most_calibration_queries}, all);
    uint32 count = 0;
    for (uint64 i = 0; i < stretches; ++i) {
        const uint64 first = i * all / stretches;
        const uint64 length = (i + 1) * all / stretches - first;
        const uint64 start = mix_hash(i) % length;
        for (uint64 tried = 0; tried < length; ++tried) {
            const uint64 row = first + (start + tried) % length;
            if (is_dead(merge, row)) continue;
            rows[count++] = static_cast<uint32>(row);
            break;
        }
    }
    return count;
}

// Send the engine the rows that serve as queries.
void give_queries(const MergeRun* merge, const EngineBuild* build, const StoredArray& kept)
{
    const uint64 row_bytes = kept.shape.width * array_type_bytes(kept.shape.type);
    auto* rows = static_cast<uint32*>(palloc(sizeof(uint32) * most_calibration_queries));
    const uint32 count = choose_queries(merge, rows);
    auto* queries = static_cast<char*>(MemoryContextAllocHuge(CurrentMemoryContext, row_bytes * Max(count, 1U)));
    for (uint32 i = 0; i < count; ++i) {
        merge_delay_point();
        read_stored(merge->index, merge->next, kept, rows[i] * row_bytes, row_bytes, queries + i * row_bytes);
    }
    give_made_array(build, make_array_shape(array_calib_row, ArrayType::u32, count, 1), rows);
    give_made_array(build, make_array_shape(array_calib_query, ArrayType::u8, count, row_bytes), queries);
    pfree(queries);
    pfree(rows);
}

// Reads the first word of a row that is a list, and the word behind its last.
void read_list_range(const MergeRun* merge, uint64 row, uint64 (&range)[2])
{
    const StoredArray* offsets = find_array(merge->next, *merge->method, ArrayRole::list_offsets);
    const StoredArray* words = find_array(merge->next, *merge->method, ArrayRole::list_words);
    read_stored(merge->index, merge->next, *offsets, row * sizeof(uint64), sizeof(range), range);
    if (range[0] > range[1] || range[1] - range[0] > max_list_words || range[1] > words->shape.rows)
        report_corruption(merge->index, merge->meta.directory_block, "the offsets of its lists are impossible");
}

// Send the engine the lists that serve as queries.
void give_query_lists(const MergeRun* merge, const EngineBuild* build)
{
    const StoredArray* words = find_array(merge->next, *merge->method, ArrayRole::list_words);
    auto* rows = static_cast<uint32*>(palloc(sizeof(uint32) * most_calibration_queries));
    const uint32 count = choose_queries(merge, rows);
    auto* offsets = static_cast<uint64*>(palloc0(sizeof(uint64) * (count + 1)));
    uint64 range[2];
    for (uint32 i = 0; i < count; ++i) {
        read_list_range(merge, rows[i], range);
        offsets[i + 1] = offsets[i] + range[1] - range[0];
    }
    const uint64 all = offsets[count];
    auto* queries =
        static_cast<uint32*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * Max(all, uint64{1})));
    for (uint32 i = 0; i < count; ++i) {
        merge_delay_point();
        read_list_range(merge, rows[i], range);
        const uint64 bytes = sizeof(uint32) * (offsets[i + 1] - offsets[i]);
        if (bytes > 0)
            read_stored(merge->index, merge->next, *words, range[0] * sizeof(uint32), bytes, queries + offsets[i]);
    }
    give_made_array(build, make_array_shape(array_calib_row, ArrayType::u32, count, 1), rows);
    give_made_array(build, make_array_shape(array_calib_offset, ArrayType::u64, count + 1, 1), offsets);
    give_made_array(build, make_array_shape(array_calib_query, ArrayType::u32, all, 1), queries);
    pfree(queries);
    pfree(offsets);
    pfree(rows);
}

// Send the engine the bitmap of dead rows, if there are any.
void give_dead(const MergeRun* merge, const EngineBuild* build)
{
    if (merge->kind != MergeKind::append || merge->counts.dead_rows == 0) return;
    const uint64 words = (merge->next.rows + 63) / 64;
    auto* dead = static_cast<uint64*>(
        MemoryContextAllocExtended(CurrentMemoryContext, sizeof(uint64) * words, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    memcpy(dead, merge->dead, sizeof(uint64) * ((merge->counts.rows + 63) / 64));
    give_made_array(build, make_array_shape(array_calib_dead, ArrayType::u64, words, 1), dead);
    pfree(dead);
}

// Send the engine lists that serve as queries, then all lists with their codes, their words last.
void give_coded_lists(const MergeRun* merge, const EngineBuild* build)
{
    give_query_lists(merge, build);
    for (const ArrayRole role : {ArrayRole::codes, ArrayRole::list_offsets, ArrayRole::list_words}) {
        const StoredArray* array = find_array(merge->next, *merge->method, role);
        give_stored_array(build, merge->index, merge->next, *array, "calibrating");
    }
}

// Where a row has no list, its place follows from its codes: send the engine the quantizer and all codes.
void give_places(const MergeRun* merge, const EngineBuild* build)
{
    if (array_name(*merge->method, ArrayRole::quantizer) == nullptr ||
        array_name(*merge->method, ArrayRole::list_of_row) != nullptr)
        return;
    for (const ArrayDescription& described : merge->method->arrays) {
        if (described.role != ArrayRole::quantizer && described.role != ArrayRole::codes) continue;
        const StoredArray* array = find_array(merge->next, described.name);
        if (array != nullptr) give_stored_array(build, merge->index, merge->next, *array, "calibrating");
    }
}

BuildRunReply measure(MergeRun* merge, EngineBuild* build)
{
    const StoredArray* kept = kept_rows(*merge->method, merge->next);
    constexpr ArrayRole roles[] = {ArrayRole::centroids,   ArrayRole::half_mean,   ArrayRole::half_scale,
                                   ArrayRole::list_of_row, ArrayRole::code_scales, ArrayRole::hashes};
    begin_engine_build(build);
    for (const ArrayRole role : roles) {
        const StoredArray* array = find_array(merge->next, *merge->method, role);
        if (array != nullptr) give_stored_array(build, merge->index, merge->next, *array, "calibrating");
    }
    give_places(merge, build);
    give_dead(merge, build);
    if (kept != nullptr) {
        give_queries(merge, build, *kept);
        give_stored_array(build, merge->index, merge->next, *kept, "calibrating");
    } else {
        give_coded_lists(merge, build);
    }
    const BuildRunReply reply = *run_engine_build(build);
    end_engine_build(build);
    return reply;
}

}  // namespace

uint64 linked_dead_rows(const MergeRun* merge)
{
    const auto unlinked = static_cast<uint64>(merge->directory->options.get(option_unlinked, 0));
    return merge->counts.dead_rows - Min(unlinked, merge->counts.dead_rows);
}

bool wants_recall(const MergeRun* merge)
{
    return can_calibrate(*merge->method, *merge->directory) && is_outdated(merge->next);
}

void keep_recall(MergeRun* merge)
{
    Directory* next = &merge->next;
    const bool append = merge->kind == MergeKind::append;
    const auto unlinked = static_cast<int64>(append ? merge->counts.dead_rows : 0);
    if (unlinked > 0 || next->options.get(option_unlinked, 0) > 0) next->options.set(option_unlinked, unlinked);
    if (merge->built->calibration.count == 0) return;
    if (next->options.get(option_built_effort, 0) == 0) {
        const double built = needed_effort(merge->directory->calibration);
        next->options.set(option_built_effort, static_cast<int64>(ceil(built)));
    }
    next->calibration = merge->built->calibration;
    next->changed_rows = 0;
    elog(DEBUG1, "index \"%s\": a recall of %g takes an effort of %.1f, after its build " INT64_FORMAT,
         RelationGetRelationName(merge->index), judged_recall, needed_effort(next->calibration),
         next->options.get(option_built_effort, 0));
}

bool recall_has_dropped(const Directory& directory)
{
    const auto built = static_cast<double>(directory.options.get(option_built_effort, 0));
    if (built <= 0 || directory.calibration.count == 0) return false;
    const double now = needed_effort(directory.calibration);
    return now == 0 || now > most_effort * built;
}

bool can_calibrate(const MethodDescription& method, const Directory& directory)
{
    return directory.calibration.count > 0 &&
           (kept_rows(method, directory) != nullptr || keeps_coded_lists(method, directory));
}

void calibrate_merged(MergeRun* merge)
{
    Directory* next = &merge->next;
    if (merge->kind != MergeKind::append && merge->kind != MergeKind::compact) return;
    if (merge->method->complete.has(merge->meta.shape.element) || merge->method->links_rows)
        return;  // nothing to measure, or measured with the links
    if (!can_calibrate(*merge->method, *next) || !is_outdated(*next) || merge->counts.live() < 2) return;
    // Without the engine, a later merge measures recall.
    char* why = nullptr;
    if (!try_open_engine(&why)) return;
    EngineBuild* build = &merge->build;
    *build = {};
    build->kind = BuildKind::calibrate;
    build->shape = merge->meta.shape;
    build->options = next->options;
    const BuildRunReply measured = measure(merge, build);
    if (measured.calibration.count == 0) return;
    next->calibration = measured.calibration;
    next->changed_rows = 0;
    // A calibration may choose options of searches, or say what it was measured on.
    for (uint32 i = 0; i < measured.options.count; ++i)
        next->options.set(measured.options.items[i].name, measured.options.items[i].value);
}

}  // namespace pgwarp
