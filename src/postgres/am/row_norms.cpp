// Norms of vectors of every element type.
#include "postgres/am/row_norms.h"

#include "postgres/types/any_vector.h"
#include "postgres/types/sparsevec.h"

namespace pgwarp
{

static double norm_of_sparsevec(Datum value)
{
    SparseVector* vector = datum_get_sparsevec(value);
    const double norm = sparse_norm(view_sparsevec(vector));
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(value)) pfree(vector);
    return norm;
}

NormRange range_of_row(const IndexShape& shape, Datum value)
{
    if (shape.element == ElementType::sparse) return norm_range(norm_of_sparsevec(value));
    const AnyVector vector = read_any_vector(shape.element, value);
    const auto dimensions = static_cast<Size>(vector.dim);
    const double norm = shape.element == ElementType::float16
                            ? canonical_norm(static_cast<const half_bits*>(vector.x), dimensions)
                            : canonical_norm(static_cast<const float*>(vector.x), dimensions);
    free_any_vector(vector);
    return norm_range(norm);
}

}  // namespace pgwarp
