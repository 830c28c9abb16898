// The delta of an index, pushed to its mirror: entries of the delta logs and tombstones that the mirror lacks. Where an
// index is searched, rows go as they are inserted: the next search need not bring them first.
#pragma once

#include "postgres/client/mirror_request.h"
#include "postgres/storage/delta_log.h"

namespace pgwarp
{

// Sends the entries of each log from `have`, the mirror's ends, to the state's. The receipt of few is not waited for:
// the search that follows tells whether they have arrived.
LoadOutcome send_delta(Relation index, const IndexState& state, const uint64 have[delta_log_count]);

// Sends the few entries that the mirror lacks, as far as sessions know, if no other session does.
void push_delta(Relation index, const IndexState& state);

// Sends the row that was just appended, unless the engine lacks others before it or the transaction has inserted many.
// `value`: as appended. Neither waits nor raises errors of the engine: replies to searches ask for lost
// rows.
void push_inserted_row(Relation index, const MetaPage& meta, const DeltaPlace& place, ItemPointer tid,
                       const DeltaValue& value);

// Sends all tombstones as of the state's version, which was read before them.
LoadOutcome send_tombstones(Relation index, const IndexState& state);

}  // namespace pgwarp
