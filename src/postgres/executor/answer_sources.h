// Where scans find answers that nodes of ours have had searched for (scan/prefetched_answers.h).
#pragma once

namespace pgwarp
{

// Called by _PG_init.
void init_answer_sources();

}  // namespace pgwarp
