// Watched index scans: pgwarp replaces their first execution, which makes the scan descriptor and stores the hint in
// it. After that PostgreSQL's own function runs. A scan's hint lies in the memory of its query and is found there by
// the scan's node. It is freed with the query, so it never reaches another scan of the index, not even after an error.
#pragma once

#include "postgres/scan/limit_hint.h"

namespace pgwarp
{

// Watches an IndexScan or IndexOnlyScan of a pgwarp index: its first execution makes the scan with the hint.
void watch_scan(PlanState* node, const LimitHint& hint);

// Notes, before the executor runs, whether it will run to the query's end.
void note_execution(const EState* executor, bool to_the_end);

}  // namespace pgwarp
