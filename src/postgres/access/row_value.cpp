#include "postgres/access/row_value.h"

#include "numeric/metric.h"
#include "postgres/types/vector.h"

namespace pgwarp
{

bool normalise(float* vector, uint32 dimensions)
{
    const double norm = canonical_norm(vector, dimensions);
    if (norm == 0) return false;
    for (uint32 i = 0; i < dimensions; ++i) vector[i] = static_cast<float>(vector[i] / norm);
    return true;
}

bool index_row_value(Relation index, const IndexShape& shape, Datum value, float* out)
{
    (void)index;
    Vector* vector = datum_get_vector(value);
    check_expected_dim(static_cast<int32>(shape.dimensions), vector->dim);
    memcpy(out, vector->x, shape.dimensions * sizeof(float));
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(value)) pfree(vector);
    return shape.metric != static_cast<uint8>(Metric::cosine) || normalise(out, shape.dimensions);
}

}  // namespace pgwarp
