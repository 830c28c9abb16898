// The ends of delta logs in pgwarp-engine's mirrors, as far as sessions know: entries that a mirror lacks can go ahead
// of a search. Without them the search's reply would ask for them first.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Notes a mirror's ends, as a reply tells them; takes next to no time while they stay the same.
void note_delta_progress(const MirrorKey& key, const uint64* ends);

// Whether a mirror lacks entries before `ends`, at most `most`, that no session is sending. Then this session is to
// send them, from `have` on. A mirror that lacks more is no harm: replies to searches ask for it.
bool claim_delta(const MirrorKey& key, const uint64* ends, uint64 most, uint64* have);

// Whether the mirror lacks this entry and none before it in its log, and is still searched: then this session is to
// send it.
bool claim_inserted_row(const MirrorKey& key, uint32 log, uint64 ordinal);

}  // namespace pgwarp
