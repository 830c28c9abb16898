// Starts a background worker that merges an index whose logs cost searches too much, between two runs of autovacuum.
// Under a steady stream of inserts those runs may be far apart, and when the stream ends below autovacuum's threshold,
// there is none.
#pragma once

#include "postgres/client/index_state.h"

namespace pgwarp
{

// Rows inserted into a log between two checks whether a merge is due.
inline constexpr uint64 merge_check_interval = 512;

// Starts a worker that merges the indexes of the table, if the logs of this index in this state cost too much, no
// worker runs, and none ran just before. Called by inserts and searches, so it waits for nothing and raises no errors
// of its own.
void consider_merge(Relation index, const IndexState& state);

}  // namespace pgwarp
