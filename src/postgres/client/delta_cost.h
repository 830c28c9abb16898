// The cost that delta rows add to searches, as pgwarp-engine measures it. Searches note it, decisions on merges read
// it.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Notes the cost in an answer; takes next to no time while the cost stays the same. A negative cost is not known yet.
void note_delta_cost(Relation index, const MetaPage& meta, const uint64* ends, float cost);

// The cost of `entries` delta rows, as a share of a search's time without them: measured in the same generation, with
// no more entries than these and no fewer than half of them. Negative: not known.
double measured_delta_cost(Relation index, const MetaPage& meta, uint64 entries);

}  // namespace pgwarp
