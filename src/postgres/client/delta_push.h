// Sends the delta of an index to its mirror: entries of the delta logs and tombstones that the mirror lacks. While an
// index is searched, rows are sent as they are inserted, so that the next search need not send them first.
#pragma once

#include "postgres/client/mirror_request.h"
#include "postgres/storage/delta_log.h"

namespace pgwarp
{

// Sends the entries of each log from `have`, the mirror's ends, to the state's ends. Few entries are sent without
// waiting for an acknowledgement: the reply to the next search tells whether they have arrived.
LoadOutcome send_delta(Relation index, const IndexState& state, const uint64 have[delta_log_count]);

// Sends the entries that the mirror lacks if they are few and no other session sends them.
void push_delta(Relation index, const IndexState& state);

// Sends the row that was just appended, unless the mirror lacks entries before it or the transaction has inserted many
// rows. `value`: as appended. Neither waits nor raises errors of the engine: replies to searches ask for lost rows.
void push_inserted_row(Relation index, const MetaPage& meta, const DeltaPlace& place, ItemPointer tid,
                       const DeltaValue& value);

// Sends all tombstones as of the state's version. The version must be read before the tombstones, so that it is never
// too new.
LoadOutcome send_tombstones(Relation index, const DirectoryState& state);

}  // namespace pgwarp
