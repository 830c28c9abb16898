// Adding rows to a graph that exists.
#pragma once

#include <memory>

#include "index/index.h"

namespace pgwarp
{

// A builder that is given every array of the index and makes, for the new rows alone, "neighbours" and "vectors",
// "half" (with the "half_scale" of all rows) or "bits"; for all rows "seeds"; and for the old ones "edge_changes".
// Where the changes have become many, "neighbours" has all rows, old ones first, and there are no changes any more. The
// options are effective ones. Each new row is searched for, edges to what is found are drawn as a build draws them, and
// edges back.
std::unique_ptr<Builder> make_graph_extender(const IndexShape& shape, const ParameterList& options);

}  // namespace pgwarp
