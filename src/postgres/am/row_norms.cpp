// Norms of vectors of every element type.
#include "postgres/am/row_norms.h"

#include "postgres/types/any_vector.h"

namespace pgwarp
{

NormRange range_of_row(const IndexShape& shape, Datum value)
{
    const AnyVector vector = read_any_vector(shape.element, value);
    const auto dimensions = static_cast<Size>(vector.dim);
    const double norm = shape.element == ElementType::float16
                            ? canonical_norm(static_cast<const half_bits*>(vector.x), dimensions)
                            : canonical_norm(static_cast<const float*>(vector.x), dimensions);
    free_any_vector(vector);
    return norm_range(norm);
}

}  // namespace pgwarp
