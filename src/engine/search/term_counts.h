// Statistics of the terms of a query over the rows of an index and its delta.
#pragma once

#include "engine/mirror/mirror.h"

namespace pgwarp
{

// `query`: one valid query of an index of bags. Dead rows count until a merge. Throws Cancelled.
TermCounts count_terms(const Mirror& mirror, const MirrorSnapshot& snapshot, const RowView& query,
                       const CancelToken* cancel);
// Estimated operations: delta rows that no part holds are read one by one.
double cost_of_counts(const MirrorSnapshot& snapshot, const RowView& query);

}  // namespace pgwarp
