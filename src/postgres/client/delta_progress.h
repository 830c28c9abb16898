// The ends of delta logs in pgwarp-engine's mirrors, as far as sessions know. With them a session sends missing entries
// before a search; without them the search's reply would ask for the entries first.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Notes a mirror's ends from a reply. Takes no lock while they stay the same.
void note_delta_progress(const MirrorKey& key, const uint64* ends);

// Returns true when a mirror lacks at most `most` entries before `ends` and no session is sending them. The caller then
// sends them, from `have` on. A mirror that lacks more gets them later, because replies to searches ask for them.
bool claim_delta(const MirrorKey& key, const uint64* ends, uint64 most, uint64* have);

// Returns true when the mirror lacks this entry and none before it in its log, and searches still use the mirror. The
// caller then sends the entry.
bool claim_inserted_row(const MirrorKey& key, uint32 log, uint64 ordinal);

}  // namespace pgwarp
