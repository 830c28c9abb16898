// Quarantine: after the searches of an index made the engine die twice, they are sent to the CPU device for a while.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

bool index_is_quarantined(const MirrorKey& key);
// For 30 seconds at first, and twice as long after each further time, up to about an hour.
void quarantine_index(const MirrorKey& key);

}  // namespace pgwarp
