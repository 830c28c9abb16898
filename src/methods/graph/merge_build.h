// Merges: adding rows to an existing graph.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that takes every array of the index, and the dead rows (protocol/merge_build.h). It makes, for the new rows
// alone, "neighbours" and "vectors", "half" (with the "half_scale" of all rows) or "bits"; for all rows "seeds"; and
// for the old ones "edge_changes". When there are many changes, "neighbours" holds all rows instead, old ones first,
// and no changes remain; so too when dead rows are left out: then it holds live rows only, and row numbers in it and in
// "seeds" count live rows only. The options are effective ones, with those of protocol/merge_build.h.
//
// Dead rows are removed from the graph first (repair.h). Then each new row is searched for and linked (insertion.h).
//
// Where it is asked for and vectors are stored, recall is measured (remeasure.h).
std::unique_ptr<Builder> make_graph_merge_builder(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
