#include "postgres/access/query_value.h"

#include "postgres/types/vector.h"

namespace pgwarp
{

void copy_query(Datum vector, uint32 dimensions, float* query)
{
    const Vector* value = datum_get_vector(vector);
    if (static_cast<uint32>(value->dim) != dimensions) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("different vector dimensions %d and %d", static_cast<int>(dimensions), value->dim)));
    }
    memcpy(query, value->x, sizeof(float) * dimensions);
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
