// Copies and normalises queries.
#include "postgres/scan/query_value.h"

#include "postgres/types/any_vector.h"

namespace pgwarp
{

void copy_query(ElementType element, Datum vector, int length, float* query)
{
    const AnyVector value = read_any_vector(element, vector);
    if (value.dim != length) refuse_different_dims(element, length, value.dim);
    copy_floats(value, query);
}

bool prepare_query(Metric metric, const float* query, uint32 dimensions, float* sent)
{
    memcpy(sent, query, sizeof(float) * dimensions);
    if (metric != Metric::cosine) return true;
    const double norm = canonical_norm(query, dimensions);
    if (norm == 0) {
        sent[0] = 1.0F;
        return false;
    }
    for (uint32 i = 0; i < dimensions; ++i) sent[i] = static_cast<float>(query[i] / norm);
    return true;
}

}  // namespace pgwarp
