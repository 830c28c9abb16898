// How far pgwarp-engine has the delta logs of indexes that are searched, as far as sessions know: what a mirror lacks
// can go ahead of a search, which would else be told so first.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Notes how far a mirror is, as a reply says; costs next to nothing while that is known.
void note_delta_progress(const MirrorKey& key, const uint64* ends);

// Whether a mirror lacks entries before these ends, at most so many, that no session is sending. Then this session is
// to send them, from `have` on. A mirror that turns out to be less far is no harm: searches still tell what it lacks.
bool claim_delta(const MirrorKey& key, const uint64* ends, uint64 most, uint64* have);

// Whether the mirror lacks this entry and none before it in its log, and is still searched: then this session is to
// send it.
bool claim_inserted_row(const MirrorKey& key, uint32 log, uint64 ordinal);

}  // namespace pgwarp
