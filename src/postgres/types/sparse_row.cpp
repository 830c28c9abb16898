// Reads sparse vectors as rows, and compares them.
#include "postgres/types/sparse_row.h"

#include "postgres/types/list_row.h"
#include "postgres/types/sparsevec.h"

namespace pgwarp
{

RowView make_sparse_row(uint32 count)
{
    const Size room = Max(count, 1U);
    RowView row = one_list_row(static_cast<uint32*>(palloc0(sizeof(uint32) * room)), count);
    row.weights = static_cast<float*>(palloc0(sizeof(float) * room));
    return row;
}

RowView read_sparse_row(Datum value)
{
    SparseVector* vector = datum_get_sparsevec(value);
    const SparseView elements = view_sparsevec(vector);
    const RowView row = make_sparse_row(static_cast<uint32>(elements.count));
    memcpy(const_cast<uint32*>(row.words), elements.indices, sizeof(uint32) * elements.count);
    memcpy(const_cast<float*>(row.weights), elements.values, sizeof(float) * elements.count);
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(value)) pfree(vector);
    return row;
}

bool can_read_sparse(Datum)
{
    return true;
}

int sparse_dimensions(Datum value)
{
    SparseVector* vector = datum_get_sparsevec(value);
    const int dimensions = vector->dim;
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(value)) pfree(vector);
    return dimensions;
}

double sparse_row_distance(Metric metric, const RowView& query, Datum row)
{
    SparseVector* vector = datum_get_sparsevec(row);
    const double distance = sparse_distance(metric, view_sparse_row(query), view_sparsevec(vector));
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(row)) pfree(vector);
    return distance;
}

}  // namespace pgwarp
