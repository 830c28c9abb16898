// Rows of a table that stand out for a query (protocol/standing_out.h), by the distances of a sample of its rows.
#pragma once

#include "postgres/functions/search_target.h"

namespace pgwarp
{

// Sets of the sample, and room for their similarities to a query.
struct SampledSets {
    RowView* rows;
    double* similarities;
    uint32 count;
};

inline constexpr uint32 most_sampled_sets = 100;

// Reads the sets of rows of the table, at most most_sampled_sets; palloc'ed. Raises an error for a row that the
// snapshot of the target does not see.
SampledSets read_sampled_sets(const SearchTarget* target, const ItemPointerData* tids, uint32 count);

// Returns the distance to the query within which rows stand out, for an index with this number of hash functions.
double standing_out_distance(const SampledSets& sample, const RowView& query, double functions);

}  // namespace pgwarp
