// Quarantine: after an index's searches ended the engine twice, they run on the CPU device for a while.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Whether searches of the index have to run on the CPU device now. `key` names the mirror on the best device.
bool index_is_quarantined(const MirrorKey& key);
// Quarantines the index for 30 seconds at first, and twice as long after each further time, up to about an hour.
void quarantine_index(const MirrorKey& key);

}  // namespace pgwarp
