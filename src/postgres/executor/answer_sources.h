// Registers the nodes' answers as the source of prefetched answers for scans (scan/prefetched_answers.h).
#pragma once

namespace pgwarp
{

// Called by _PG_init.
void init_answer_sources();

}  // namespace pgwarp
