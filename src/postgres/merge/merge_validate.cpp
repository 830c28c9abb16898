// Validates the engine's work on a sample of the new rows, read from the pages, before the index depends on it.
#include <cmath>

#include "postgres/check/link_structure.h"
#include "postgres/merge/stored_vectors.h"

namespace pgwarp
{

namespace
{

constexpr uint32 validated_rows = 16;
// Rounding errors of the engine's choice of a list, relative to the vectors' norms and to the spread of the centroids.
constexpr double rounding = 1e-3;
constexpr double spread_rounding = 1e-6;

constexpr uint64 sample_bytes = 4U << 20;  // enough for 16 rows of the most dimensions
constexpr uint64 no_row = PG_UINT64_MAX;

struct Sample {
    uint64 stride;
    uint64 seen;
    RowBatch* batch;
    uint64 places[validated_rows];  // in the new arrays; no_row: not found there

    uint32 count() const { return static_cast<uint32>(batch->rows.count); }
};

void sample_row(void* state, Tid tid, const RowView& row)
{
    auto* sample = static_cast<Sample*>(state);
    if (sample->seen++ % sample->stride != 0 || !has_room(sample->batch, row)) return;
    sample->places[sample->count()] = no_row;
    add_row(sample->batch, tid, row);
}

void read_new(const MergeRun* merge, const char* name, uint64 first, uint64 count, void* out)
{
    const StoredArray* array = find_array(merge->next, name);
    if (array == nullptr) report_wrong(merge, "An array is missing.");
    const uint64 row_bytes = array->shape.width * array_type_bytes(array->shape.type);
    read_array(merge->index, merge->next, *array, first * row_bytes, count * row_bytes, out);
}

// Find the sampled rows in the arrays by their addresses.
void locate_rows(MergeRun* merge, Sample* sample)
{
    constexpr uint64 step = 32768;
    auto* blocks = static_cast<uint32*>(palloc(sizeof(uint32) * step));
    auto* offsets = static_cast<uint16*>(palloc(sizeof(uint16) * step));
    // Except in a rebuild, new rows come last.
    const uint64 begin = merge->kind == MergeKind::rebuild ? 0 : merge->next.rows - merge->new_rows();
    for (uint64 first = begin; first < merge->next.rows; first += step) {
        merge_delay_point();
        const uint64 count = Min(step, merge->next.rows - first);
        read_new(merge, array_tid_block, first, count, blocks);
        read_new(merge, array_tid_offset, first, count, offsets);
        for (uint64 i = 0; i < count; ++i) {
            for (uint32 s = 0; s < sample->count(); ++s) {
                if (sample->batch->tids[s] == Tid{blocks[i], offsets[i], 0}) sample->places[s] = first + i;
            }
        }
    }
    pfree(offsets);
    pfree(blocks);
}

// Check that each sampled row lies in the list whose centroid is nearest, up to rounding.
void check_lists(MergeRun* merge, const Sample& sample)
{
    const char* list_of_row = array_name(*merge->method, ArrayRole::list_of_row);
    if (list_of_row == nullptr) return;
    const IndexShape& shape = merge->meta.shape;
    NearestList nearest[validated_rows] = {};
    find_nearest_lists(merge->index, shape, merge->next, sample.batch->values, sample.count(), nearest);
    auto* centroid = static_cast<float*>(palloc(sizeof(float) * shape.dimensions));
    for (uint32 s = 0; s < sample.count(); ++s) {
        const float* vector = sample.batch->rows.row(s).values;
        uint32 list = 0;
        read_new(merge, list_of_row, sample.places[s], 1, &list);
        read_centroid(merge->index, shape, merge->next, list, centroid);
        const NearestList chosen = compare_list(shape, vector, centroid, list);
        double norms = 0;
        for (uint32 d = 0; d < shape.dimensions; ++d) {
            norms += static_cast<double>(vector[d]) * vector[d] + static_cast<double>(centroid[d]) * centroid[d];
        }
        const double allowed = rounding * norms + spread_rounding * nearest[s].farthest;
        if (!(chosen.score <= nearest[s].score + allowed)) report_wrong(merge, "A row is in the wrong list.");
    }
    pfree(centroid);
}

// Check that each stored vector equals the row's vector, up to the precision of its stored form.
void check_vectors(MergeRun* merge, const Sample& sample)
{
    if (!keeps_vectors(merge->next)) return;
    const uint32 dimensions = merge->meta.shape.dimensions;
    const double error = stored_vector_error(merge->index, merge->next);
    auto* stored = static_cast<float*>(palloc(sizeof(float) * dimensions));
    for (uint32 s = 0; s < sample.count(); ++s) {
        const float* vector = sample.batch->rows.row(s).values;
        read_stored_vectors(merge->index, merge->next, dimensions, sample.places[s], 1, stored);
        if (merge->meta.shape.element == ElementType::bit) {
            if (memcmp(vector, stored, sizeof(float) * dimensions) != 0)
                report_wrong(merge, "Bits are not those that were sent.");
            continue;
        }
        double squared = 0;
        double norm = 0;
        for (uint32 d = 0; d < dimensions; ++d) {
            const double difference = static_cast<double>(vector[d]) - stored[d];
            squared += difference * difference;
            norm += static_cast<double>(vector[d]) * vector[d];
        }
        // Normalising a unit vector again changes it by a rounding error, and the arithmetic here rounds too.
        const double allowed = error * (1 + rounding) + 1e-6 * std::sqrt(norm);
        if (!(squared <= allowed * allowed)) report_wrong(merge, "A vector is not the one that was sent.");
    }
    pfree(stored);
}

// Check the attributes of the sampled rows.
void check_attributes(MergeRun* merge, const Sample& sample)
{
    const RowView& rows = sample.batch->rows;
    if (rows.attribute_count == 0) return;
    uint64 stored[max_attributes];
    for (uint32 s = 0; s < sample.count(); ++s) {
        read_new(merge, array_attributes, sample.places[s], 1, stored);
        if (memcmp(stored, rows.row(s).attributes, sizeof(uint64) * rows.attribute_count) != 0)
            report_wrong(merge, "Attributes are not those that were sent.");
    }
}

// Check words or weights of the sampled lists.
void check_list_words(MergeRun* merge, const Sample& sample, ArrayRole role, const void* sent)
{
    const char* name = array_name(*merge->method, role);
    const char* offsets_name = array_name(*merge->method, ArrayRole::list_offsets);
    if (name == nullptr || offsets_name == nullptr || sent == nullptr) return;
    auto* stored = static_cast<uint32*>(palloc(sizeof(uint32) * max_list_words));
    for (uint32 s = 0; s < sample.count(); ++s) {
        uint64 offsets[2];
        read_new(merge, offsets_name, sample.places[s], 2, offsets);
        const RowView row = sample.batch->rows.row(s);
        if (offsets[1] - offsets[0] != row.word_count()) report_wrong(merge, "A list has another length.");
        read_new(merge, name, offsets[0], row.word_count(), stored);
        const auto* expected = static_cast<const uint32*>(sent) + row.offsets[0];
        if (memcmp(stored, expected, sizeof(uint32) * row.word_count()) != 0)
            report_wrong(merge, "A list is not the one that was sent.");
    }
    pfree(stored);
}

// Check all links, not a sample: a wrong link would lead searches astray.
void check_links(MergeRun* merge)
{
    LinkFault fault;
    find_link_fault(merge->index, merge->next, nullptr, &fault);
    if (fault.what != nullptr) report_wrong(merge, psprintf("Of its graph, %s.", fault.what));
}

}  // namespace

void report_wrong(const MergeRun* merge, const char* what)
{
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("pgwarp-engine encoded rows of index \"%s\" wrongly", RelationGetRelationName(merge->index)),
                    errdetail("%s The index is as it was before the merge.", what)));
}

void validate_merge(MergeRun* merge)
{
    if (merge->built == nullptr) return;
    check_links(merge);
    if (merge->new_rows() == 0) return;
    Sample sample = {};
    sample.stride = Max(uint64{1}, merge->new_rows() / validated_rows);
    sample.batch = make_row_batch(merge->meta.shape, validated_rows, sample_bytes);
    visit_delta(merge, sample_row, &sample);
    locate_rows(merge, &sample);
    for (uint32 s = 0; s < sample.count(); ++s) {
        if (sample.places[s] == no_row) report_wrong(merge, "A row is missing.");
    }
    check_lists(merge, sample);
    check_vectors(merge, sample);
    check_attributes(merge, sample);
    check_list_words(merge, sample, ArrayRole::list_words, sample.batch->words);
    check_list_words(merge, sample, ArrayRole::list_weights, sample.batch->weights);
    free_row_batch(sample.batch);
}

}  // namespace pgwarp
