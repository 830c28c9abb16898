// Watched index scans: pgwarp replaces their first execution, which makes the scan descriptor and stores the hint in
// it. After that PostgreSQL's own function runs. A scan's hint lies in the memory of its query and is found there by
// the scan's node. It is freed with the query, so it never reaches another scan of the index, not even after an error.
#pragma once

#include "postgres/scan/limit_hint.h"

namespace pgwarp
{

// Whether an IndexScan or IndexOnlyScan is of a pgwarp index, has not begun, and is not watched yet.
bool may_watch_scan(PlanState* node);
// Watches such a scan: its first execution makes the scan with the hint.
void watch_scan(PlanState* node, const LimitHint& hint);

// Makes a scan that has not begun return these rows first, if nobody watches it: in a sub-plan under EvalPlanQual no
// walk at executor start has met it.
void lead_scan(PlanState* node, const Leading& leading);

// Notes, before the executor runs, whether it will run to the query's end.
void note_execution(const EState* executor, bool to_the_end);

}  // namespace pgwarp
