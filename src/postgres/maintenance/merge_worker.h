// A background worker merges an index whose logs have come to cost searches too much, between two visits of autovacuum:
// under a steady stream of inserts those may be far apart.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Entries of a log between two thoughts about a merge.
inline constexpr uint64 entries_between_thoughts = 512;

// Starts a worker that merges the indexes of the table, if the logs of this one cost too much, and no worker has run
// just before. For whoever inserts:
// waits for nothing and raises nothing of its own.
void consider_merge(Relation index);

}  // namespace pgwarp
