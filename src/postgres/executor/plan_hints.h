// Gives the index scans of a plan, before it is executed, hints about the rows that the plan above them reads
// (scan/limit_hint.h).
#pragma once

namespace pgwarp
{

// Installs the executor's hooks. Called by _PG_init.
void init_plan_hints();

}  // namespace pgwarp
