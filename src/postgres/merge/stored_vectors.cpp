// Reads float and half vectors, and checks the range of half vectors.
#include "postgres/merge/stored_vectors.h"

#include <cmath>

#include "methods/description.h"
#include "numeric/half.h"

namespace pgwarp
{

namespace
{

constexpr uint64 most_step_bytes = 4U << 20;
constexpr float largest_half = 65504;

// Read a part of the array of this name, which must exist.
void read_part(Relation index, const Directory& directory, const char* name, uint64 offset, uint64 length, void* out)
{
    const StoredArray* array = find_array(directory, name);
    if (array == nullptr || offset + length > array->shape.bytes()) {
        report_corruption(index, metapage_block, "the index lacks one of its arrays");
    }
    if (read_array(index, directory, *array, offset, length, out) == ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(index));
    }
}

void decode_halves(Relation index, const Directory& directory, uint32 dimensions, uint64 first, uint64 count,
                   float* out)
{
    float scale[2];
    const uint64 row_bytes = sizeof(uint16) * dimensions;
    auto* mean = static_cast<float*>(palloc(sizeof(float) * dimensions));
    auto* halves = static_cast<uint16*>(MemoryContextAllocHuge(CurrentMemoryContext, row_bytes * count));
    read_part(index, directory, array_half_scale, 0, sizeof(scale), scale);
    read_part(index, directory, array_half_mean, 0, sizeof(float) * dimensions, mean);
    read_part(index, directory, array_half, first * row_bytes, count * row_bytes, halves);
    for (uint64 i = 0; i < count * dimensions; ++i) out[i] = float_of_half(halves[i]) / scale[0] + mean[i % dimensions];
    pfree(halves);
    pfree(mean);
}

}  // namespace

bool keeps_vectors(const Directory& directory)
{
    return find_array(directory, array_vectors) != nullptr ||
           (find_array(directory, array_half) != nullptr && find_array(directory, array_half_mean) != nullptr &&
            find_array(directory, array_half_scale) != nullptr);
}

float stored_vector_error(Relation index, const Directory& directory)
{
    if (find_array(directory, array_vectors) != nullptr || find_array(directory, array_half_scale) == nullptr) return 0;
    float scale[2];
    read_part(index, directory, array_half_scale, 0, sizeof(scale), scale);
    return scale[1];
}

namespace
{

// The largest allowed difference of values from the mean, and whether all rows were within it.
struct HalfRange {
    uint32 dimensions;
    float* mean;
    float farthest;
    bool holds;
};

void check_range(void* state, Tid, const RowView& row)
{
    auto* range = static_cast<HalfRange*>(state);
    for (uint32 d = 0; d < range->dimensions; ++d) {
        if (!(std::fabs(row.values[d] - range->mean[d]) <= range->farthest)) range->holds = false;
    }
}

}  // namespace

bool halves_hold_new_rows(MergeRun* merge)
{
    const Directory& directory = *merge->directory;
    if (find_array(directory, array_vectors) != nullptr || find_array(directory, array_half) == nullptr) return true;
    const uint32 dimensions = merge->meta.shape.dimensions;
    float scale[2];
    HalfRange range = {dimensions, static_cast<float*>(palloc(sizeof(float) * dimensions)), 0, true};
    read_part(merge->index, directory, array_half_scale, 0, sizeof(scale), scale);
    read_part(merge->index, directory, array_half_mean, 0, sizeof(float) * dimensions, range.mean);
    range.farthest = largest_half / scale[0];
    visit_delta(merge, check_range, &range);
    pfree(range.mean);
    return range.holds;
}

void read_stored_vectors(Relation index, const Directory& directory, uint32 dimensions, uint64 first, uint64 count,
                         float* out)
{
    if (find_array(directory, array_vectors) == nullptr) {
        decode_halves(index, directory, dimensions, first, count, out);
        return;
    }
    const uint64 row_bytes = sizeof(float) * dimensions;
    read_part(index, directory, array_vectors, first * row_bytes, count * row_bytes, out);
}

void visit_stored_rows(MergeRun* merge, RowVisit visit, void* state)
{
    const uint64 rows = merge->counts.rows;
    if (merge->old_rows() == 0) return;
    const Directory& directory = *merge->directory;
    const uint32 dimensions = merge->meta.shape.dimensions;
    const uint64 attribute_bytes = sizeof(uint64) * merge->meta.shape.attribute_count;
    const uint64 step = Max(uint64{1}, Min(rows, most_step_bytes / (sizeof(float) * dimensions + attribute_bytes)));
    auto* vectors = static_cast<float*>(palloc(sizeof(float) * dimensions * step));
    auto* attributes = static_cast<uint64*>(palloc(attribute_bytes * step));
    RowView all = dense_rows(vectors, step, dimensions);
    all.attribute_count = merge->meta.shape.attribute_count;
    all.attributes = attributes;
    auto* blocks = static_cast<uint32*>(palloc(sizeof(uint32) * step));
    auto* offsets = static_cast<uint16*>(palloc(sizeof(uint16) * step));
    for (uint64 first = 0; first < rows; first += step) {
        merge_delay_point();
        report_merge("copying rows", first, rows);
        const uint64 count = Min(step, rows - first);
        read_stored_vectors(merge->index, directory, dimensions, first, count, vectors);
        read_part(merge->index, directory, array_tid_block, first * sizeof(uint32), count * sizeof(uint32), blocks);
        read_part(merge->index, directory, array_tid_offset, first * sizeof(uint16), count * sizeof(uint16), offsets);
        if (attribute_bytes > 0)
            read_part(merge->index, directory, array_attributes, first * attribute_bytes, count * attribute_bytes,
                      attributes);
        for (uint64 i = 0; i < count; ++i) {
            if (!merge->row_is_dead(first + i)) visit(state, {blocks[i], offsets[i], 0}, all.row(i));
        }
    }
    pfree(offsets);
    pfree(blocks);
    pfree(attributes);
    pfree(vectors);
}

}  // namespace pgwarp
