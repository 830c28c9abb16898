// The same queries searched for in many indexes, as the scans of a partitioned table do, in as few requests as the
// frames allow.
#pragma once

#include "numeric/metric.h"
#include "postgres/client/batch_search.h"

namespace pgwarp
{

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

// Searches for queries, as the engine wants them under `metric`. Indexes of another metric or of other rows, and those
// that the engine lacks something of, are left without answers; so are all when the engine refuses or ends: a search of
// an index alone finds out why. Answers are palloc'ed in the current memory context.
void search_indexes(const SearchStyle& style, IndexSearch* searches, uint32 count, Metric metric,
                    const RowView& queries, IndexSearchCounts* counts);

}  // namespace pgwarp
