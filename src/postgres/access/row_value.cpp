#include "postgres/access/row_value.h"

#include "numeric/metric.h"
#include "postgres/types/any_vector.h"

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
    const AnyVector vector = read_any_vector(shape.element, value);
    check_expected_dim(static_cast<int32>(shape.dimensions), vector.dim);
    copy_floats(vector, out);
    free_any_vector(vector);
    return shape.metric != static_cast<uint8>(Metric::cosine) || normalise(out, shape.dimensions);
}

}  // namespace pgwarp
