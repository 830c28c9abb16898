// Adding rows to a graph that exists.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// A builder that is given every array of the index, and which rows are dead (protocol/merge_build.h), and makes, for
// the new rows alone, "neighbours" and "vectors", "half" (with the "half_scale" of all rows) or "bits"; for all rows
// "seeds"; and for the old ones "edge_changes". Where the changes have become many, "neighbours" has all rows, old ones
// first, and there are no changes any more; so too where dead rows are to be left out: then it has live rows only,
// whose numbers, there and in "seeds", count no dead rows. The options are effective ones, and what to do besides.
//
// Dead rows are taken out of the graph first (repair.h). Each new row is searched for, edges to what is found are drawn
// as a build draws them, and edges back.
//
// The curve of recall is measured as a build does it (methods/recall), where that is asked for and vectors are kept: a
// sample of the rows is taken out of a copy of the graph and searched for.
std::unique_ptr<Builder> make_graph_merge_builder(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
