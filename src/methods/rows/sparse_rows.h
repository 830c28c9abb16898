// Sparse vectors as rows: the words of a list are the indices of its elements, the weights their values.
#pragma once

#include <span>

#include "numeric/sparse_distance.h"
#include "protocol/rows.h"

namespace pgwarp
{

inline SparseView sparse_row(const RowView& rows, std::size_t row)
{
    const std::span<const std::uint32_t> words = rows.list(row);
    return {words.data(), rows.list_weights(row).data(), words.size()};
}

// out[i] = the canonical distance of row i to the query, which is one row.
inline void compare_sparse_rows(Metric metric, const RowView& query, const RowView& rows, std::span<double> out)
{
    const SparseView vector = sparse_row(query, 0);
    for (std::size_t i = 0; i < rows.count; ++i) out[i] = sparse_distance(metric, vector, sparse_row(rows, i));
}

}  // namespace pgwarp
