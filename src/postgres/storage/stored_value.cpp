#include "postgres/storage/stored_value.h"

#include "numeric/metric.h"

namespace pgwarp
{

uint32 stored_value_bytes(const IndexShape& shape)
{
    const Size element_bytes = shape.element == ElementType::float16 ? sizeof(half_bits) : sizeof(float);
    return shape.dimensions * static_cast<uint32>(element_bytes);
}

void decode_stored_value(const IndexShape& shape, const char* stored, float* out)
{
    if (shape.element != ElementType::float16) {
        if (stored != reinterpret_cast<char*>(out)) memcpy(out, stored, stored_value_bytes(shape));
        return;
    }
    for (uint32 i = 0; i < shape.dimensions; ++i) {
        half_bits half;
        memcpy(&half, stored + i * sizeof(half), sizeof(half));
        out[i] = float_of_half(half);
    }
    if (shape.metric == static_cast<uint8>(Metric::cosine)) normalise(out, shape.dimensions);
}

bool normalise(float* vector, uint32 dimensions)
{
    const double norm = canonical_norm(vector, dimensions);
    if (norm == 0) return false;
    for (uint32 i = 0; i < dimensions; ++i) vector[i] = static_cast<float>(vector[i] / norm);
    return true;
}

}  // namespace pgwarp
