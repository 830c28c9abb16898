// The cost that delta rows add to searches, as pgwarp-engine measures it. Searches note it; decisions on merges read
// it.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Notes the cost from a search's reply. Takes no lock while the cost stays the same. A negative cost is unknown.
void note_delta_cost(Relation index, const MetaPage& meta, const uint64* ends, float cost);

// Returns the cost of `entries` delta rows as a share of a search's time without them. It was measured in the same
// generation, with at most `entries` and at least half of them. Negative: unknown.
double measured_delta_cost(Relation index, const MetaPage& meta, uint64 entries);

}  // namespace pgwarp
