// The unplaced rows of a scan (storage/unplaced.h). The scan offers them after all others: first those whose distance
// is not a number, then NULLs, each in order of heap addresses. Those that lead (limit_hint.h) it offers before all
// others.
#pragma once

#include "postgres/scan/scan_state.h"

namespace pgwarp
{

// The next unplaced row of the scan's stage, with a distance that is not a number; null at the end. Valid until the
// next call.
Candidate* next_unplaced_candidate(IndexScanDesc scan);

// Raises an error unless the last row returned is unplaced in the heap too, and of the same kind.
void verify_unplaced(IndexScanDesc scan);

// Ends a stage of leading rows.
void end_leading_stage(IndexScanDesc scan);

// Closes temporary files, for a rescan or the end of the scan. After an error their resource owner closes them.
void forget_unplaced(ScanState* state);

}  // namespace pgwarp
