// What delta rows add to searches, as pgwarp-engine measures it: noted by those who search, for those who decide on
// merges.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Notes what an answer says; costs next to nothing while it says what it said before. A negative cost is not known yet.
void note_delta_cost(Relation index, const MetaPage& meta, const uint64* ends, float cost);

// What so many delta rows add to a search, as a share of its time without them: measured with no more entries than
// these in the same generation, and no fewer than half of them. Negative: not known.
double measured_delta_cost(Relation index, const MetaPage& meta, uint64 entries);

}  // namespace pgwarp
