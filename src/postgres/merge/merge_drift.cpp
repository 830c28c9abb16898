// Drift: whether new rows differ so much from the rows that the quantizers were trained on that another training pays.
// The engine compares a sample of both. The trained rows are the first ones of the arrays. After a compaction some of
// them may be gone; the first rows then stand for them.
#include "numeric/hash.h"
#include "postgres/client/request.h"
#include "postgres/merge/stored_vectors.h"
#include "postgres/storage/array_role.h"
#include "protocol/drift.h"

namespace pgwarp
{

namespace
{

constexpr uint32 sample_rows = 128;
constexpr uint64 fewest_new_rows = 48;  // fewer prove little
constexpr uint64 new_part = 16;         // one part in 16 of the rows must be new since the last training
constexpr uint64 rows_for_a_word = 32;  // with fewer rows per codeword the codebook overfits

// The sampled row of each stride, at a pseudo-random place in it, since rows may have a period of their own.
uint64 sampled_row(uint64 number, uint64 stride)
{
    return number * stride + mix_hash(number) % stride;
}

// A sample of the live rows of the logs, sent to the engine.
struct DeltaSample {
    uint64 stride;
    uint64 seen;
    uint32 taken;
    RowSink* sink;
};

void send_sampled_row(void* state, Tid tid, const RowView& row)
{
    auto* sample = static_cast<DeltaSample*>(state);
    const uint64 place = sample->seen++;
    if (place != sampled_row(place / sample->stride, sample->stride) || sample->taken == sample_rows) return;
    ++sample->taken;
    add_row(sample->sink, tid, row);
}

void send_new_rows(MergeRun* merge)
{
    DeltaSample sample = {Max(uint64{1}, merge->new_rows() / sample_rows), 0, 0,
                          open_row_sink(merge->build.token, merge->build.shape)};
    visit_delta(merge, send_sampled_row, &sample);
    close_row_sink(sample.sink);
}

// Send the sampled rows of an array to the engine: rows that the quantizers were trained on, also dead ones. Later rows
// don't count, since they may have drifted in small steps.
void give_old_rows(const MergeRun* merge, const StoredArray& array)
{
    const uint64 trained = merge->directory->trained_rows;
    const uint64 rows = trained > 0 ? Min(trained, merge->counts.rows) : merge->counts.rows;
    const uint64 stride = Max(uint64{1}, rows / sample_rows);
    const uint64 row_bytes = array.shape.width * array_type_bytes(array.shape.type);
    auto* sampled = static_cast<char*>(palloc(row_bytes * sample_rows));
    ArrayShape shape = array.shape;
    for (shape.rows = 0; shape.rows < sample_rows; ++shape.rows) {
        const uint64 row = sampled_row(shape.rows, stride);
        if (row >= rows) break;
        merge_delay_point();
        read_stored(merge->index, *merge->directory, array, row * row_bytes, row_bytes,
                    sampled + shape.rows * row_bytes);
    }
    give_made_array(&merge->build, shape, sampled);
    pfree(sampled);
}

void give_old_arrays(const MergeRun* merge)
{
    for (uint32 i = 0; i < merge->directory->array_count; ++i) {
        const StoredArray& array = merge->directory->arrays[i];
        if (is_shared_array(array.shape.name)) continue;
        if (is_row_array(*merge->method, array.shape.name)) {
            give_old_rows(merge, array);
        } else {
            give_stored_array(&merge->build, merge->index, *merge->directory, array);
        }
    }
}

DriftReport read_report(const EngineBuild* build, const BuildRunReply* reply)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(reply + 1);
    DriftReport report = {};
    for (uint32 i = 0; i < reply->array_count; ++i) {
        if (strcmp(shapes[i].name, array_drift) != 0 || shapes[i].bytes() != sizeof(report)) continue;
        const TransferBuffer none = {};
        memcpy(&report, read_built_piece(build, &none, i, 0, sizeof(report)), sizeof(report));
        return report;
    }
    elog(ERROR, "pgwarp-engine compared no rows");
}

DriftReport compare_rows(MergeRun* merge)
{
    EngineBuild* build = &merge->build;
    *build = {};
    build->kind = BuildKind::calibrate;
    build->shape = merge->meta.shape;
    build->shape.attribute_count = 0;  // quantizers see no attributes
    build->options = merge->directory->options;
    build->options.set(option_trained_rows, merge->directory->trained_rows);
    build->expected_rows = sample_rows;
    begin_engine_build(build);
    give_old_arrays(merge);
    send_new_rows(merge);
    const BuildRunReply* reply = run_engine_build(build);
    const DriftReport report = read_report(build, reply);
    end_engine_build(build);
    return report;
}

// Whether enough rows have come since the training. Training on a few unlike rows may leave them as unlike as before.
bool are_many_new(const MergeRun* merge)
{
    const uint64 trained = merge->directory->trained_rows;
    const uint64 since = merge->counts.rows - Min(trained, merge->counts.rows) + merge->new_rows();
    return since > merge->counts.live() / new_part;
}

}  // namespace

bool can_retrain(const MergeRun* merge)
{
    return keeps_vectors(*merge->directory);
}

const char* compared_for_drift(const MethodDescription& method, const Directory& directory)
{
    if (find_array(directory, method, ArrayRole::centroids) == nullptr) return nullptr;
    const StoredArray* books = find_array(directory, method, ArrayRole::codebooks);
    if (books == nullptr) return "centroids";
    if (!keeps_vectors(directory)) return "centroids, by codes";
    return directory.trained_rows < rows_for_a_word * books->shape.rows ? "centroids" : "centroids and codes";
}

bool has_drifted(MergeRun* merge)
{
    if (merge->new_rows() < fewest_new_rows || !are_many_new(merge)) return false;
    // Without the engine the merge of new rows fails anyway, and reports that.
    char* why = nullptr;
    if (compared_for_drift(*merge->method, *merge->directory) == nullptr || !try_open_engine(&why)) return false;
    DriftReport report = {};
    PG_TRY();
    {
        report = compare_rows(merge);
    }
    PG_CATCH();
    {
        abandon_engine_build(&merge->build);
        PG_RE_THROW();
    }
    PG_END_TRY();
    elog(DEBUG1, "index \"%s\": mean quantization error of old rows %g, coded %g, of new ones %g, coded %g",
         RelationGetRelationName(merge->index), report.old_centroid, report.old_code, report.new_centroid,
         report.new_code);
    return report.has_drifted != 0;
}

}  // namespace pgwarp
