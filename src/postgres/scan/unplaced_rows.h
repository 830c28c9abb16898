// The unplaced rows of a scan: when it has offered all others, it offers these (storage/unplaced.h), those whose
// distance is not a number first, then NULLs, each in order of heap addresses.
#pragma once

#include "postgres/scan/scan_state.h"

namespace pgwarp
{

// The next one, with a distance that is not a number; null at the end. Valid until the next call.
Candidate* next_unplaced_candidate(IndexScanDesc scan);

// Raises an error unless the row that was returned last is unplaced, and of its kind, in the heap too.
void verify_unplaced(IndexScanDesc scan);

// Closes temporary files, for a rescan or the end. After an error their resource owner closes them.
void forget_unplaced(ScanState* state);

}  // namespace pgwarp
