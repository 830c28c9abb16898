// A background worker merges an index whose logs have come to cost searches too much, between two visits of autovacuum:
// under a steady stream of inserts those may be far apart, and when the stream ends before a threshold of autovacuum's,
// none comes.
#pragma once

#include "postgres/client/index_state.h"

namespace pgwarp
{

// Rows inserted into a log between two checks whether a merge is due.
inline constexpr uint64 merge_check_interval = 512;

// Starts a worker that merges the indexes of the table, if the logs of this one, in this state, cost too much, no
// worker is at work, and none was just before. For whoever inserts or searches: waits for nothing and raises nothing of
// its own.
void consider_merge(Relation index, const IndexState& state);

}  // namespace pgwarp
