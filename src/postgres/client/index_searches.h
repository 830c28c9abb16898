// Searches for the same queries in many indexes, as the scans of a partitioned table do, in as few requests as the
// frame size allows.
#pragma once

#include "numeric/metric.h"
#include "postgres/client/batch_search.h"

namespace pgwarp
{

// The search of one index; the caller fills `index` and `wanted`.
struct IndexSearch {
    Relation index;
    uint32 wanted;         // rows for each query
    BatchAnswer* answers;  // one for each query; null: the index is to be searched alone
};

// The cost of the searches, for EXPLAIN.
struct IndexSearchCounts {
    uint64 requests;
    uint64 searches;  // queries answered
    uint64 engine_ns;
    bool on_cuda;
    ParameterList settings;  // of the last request
};

// Searches for queries, in the form that the engine expects under `metric`, among the rows that pass their predicates.
// An index gets no answers if it has another metric or another shape of rows, or if its mirror lacks something. No
// index gets answers if the engine refuses or ends: the search of a single index then reports the reason. Answers are
// palloc'ed in the current memory context.
void search_indexes(const SearchStyle& style, IndexSearch* searches, uint32 count, Metric metric,
                    const RowView& queries, const SearchPredicates& predicates, IndexSearchCounts* counts);

}  // namespace pgwarp
