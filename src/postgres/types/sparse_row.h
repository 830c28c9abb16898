// Sparse vectors as rows of an index: the indices of their elements are words, the values weights.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/sparse_distance.h"
#include "protocol/rows.h"

namespace pgwarp
{

// See ListType (list_value.h).
RowView read_sparse_row(Datum value);
bool can_read_sparse(Datum value);
int sparse_dimensions(Datum value);
double sparse_row_distance(Metric metric, const RowView& query, Datum row);

// Returns a palloc'ed sparse vector without elements, with room for `count`.
RowView make_sparse_row(uint32 count);

// Returns the elements of a row of one sparse vector.
inline SparseView view_sparse_row(const RowView& row)
{
    return {row.words + row.offsets[0], row.weights + row.offsets[0], static_cast<Size>(row.word_count())};
}

}  // namespace pgwarp
