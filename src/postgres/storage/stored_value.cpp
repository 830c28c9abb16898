// Encodes and decodes rows of the logs.
#include "postgres/storage/stored_value.h"

#include "numeric/metric.h"

namespace pgwarp
{

uint32 stored_value_bytes(const IndexShape& shape)
{
    if (is_list(shape.element)) return 0;
    const Size element_bytes = shape.element == ElementType::float16 ? sizeof(half_bits) : sizeof(float);
    return shape.dimensions * static_cast<uint32>(element_bytes);
}

static uint32 word_bytes(const IndexShape& shape)
{
    return has_weights(shape.element) ? sizeof(uint32) + sizeof(float) : sizeof(uint32);
}

uint32 most_stored_bytes(const IndexShape& shape)
{
    const uint32 row_bytes = is_list(shape.element) ? max_list_words * word_bytes(shape) : stored_value_bytes(shape);
    return row_bytes + shape.attribute_count * static_cast<uint32>(sizeof(uint64));
}

uint32 stored_list_words(const IndexShape& shape, uint32 row_bytes)
{
    return row_bytes / word_bytes(shape);
}

bool is_list_length(const IndexShape& shape, uint32 row_bytes)
{
    return row_bytes % word_bytes(shape) == 0 && stored_list_words(shape, row_bytes) <= max_list_words;
}

StoredRowSpace make_row_space(const IndexShape& shape)
{
    StoredRowSpace space = {};
    if (shape.element == ElementType::float16)
        space.vector = static_cast<float*>(palloc(sizeof(float) * shape.dimensions));
    return space;
}

void free_row_space(StoredRowSpace* space)
{
    if (space->vector != nullptr) pfree(space->vector);
    space->vector = nullptr;
}

// Decodes halves to floats, of unit length for cosine.
static void decode_halves(const IndexShape& shape, const char* stored, float* out)
{
    for (uint32 i = 0; i < shape.dimensions; ++i) {
        half_bits half;
        memcpy(&half, stored + i * sizeof(half), sizeof(half));
        out[i] = float_of_half(half);
    }
    if (shape.metric == static_cast<uint8>(Metric::cosine)) normalise(out, shape.dimensions);
}

RowView view_stored_row(const IndexShape& shape, const char* stored, uint32 row_bytes, StoredRowSpace* space)
{
    RowView row;
    if (is_list(shape.element)) {
        const uint32 words = stored_list_words(shape, row_bytes);
        space->offsets[0] = 0;
        space->offsets[1] = words;
        row.count = 1;
        row.offsets = space->offsets;
        row.words = reinterpret_cast<const uint32*>(stored);
        if (has_weights(shape.element)) row.weights = reinterpret_cast<const float*>(row.words + words);
    } else {
        const bool halves = shape.element == ElementType::float16;
        if (halves) decode_halves(shape, stored, space->vector);
        row = dense_rows(halves ? space->vector : reinterpret_cast<const float*>(stored), 1, shape.dimensions);
    }
    row.attribute_count = shape.attribute_count;
    if (row.attribute_count == 0) return row;
    memcpy(space->attributes, stored + row_bytes, sizeof(uint64) * row.attribute_count);
    row.attributes = space->attributes;
    return row;
}

bool normalise(float* vector, uint32 dimensions)
{
    const double norm = canonical_norm(vector, dimensions);
    if (norm == 0) return false;
    for (uint32 i = 0; i < dimensions; ++i) vector[i] = static_cast<float>(vector[i] / norm);
    return true;
}

}  // namespace pgwarp
