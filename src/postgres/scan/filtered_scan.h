// State that a KnnFilter shares with the scan below it. An access method sees neither LIMIT nor filter. Therefore the
// filter tells the scan the number of rows that it needs and the share that passes, and the scan's first search is deep
// enough. The scan describes each row by its distance and by the search that found it, so the filter knows which rows
// it may return.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/scan/limit_hint.h"
#include "protocol/format.h"

extern "C" {
#include "access/relscan.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Description of the row that the scan returned last.
struct ScannedRow {
    bool known;      // false: nothing of this is known, the rows come in the scan's own order
    bool unordered;  // every order is right, and there is no distance: NULL queries, zero vectors under cosine
    bool in_order;   // no row that comes later is nearer
    bool confirmed;  // the search was deep enough for this row: it misses none nearer but by its recall
    Tid tid;         // as the index has it
    double value;    // the distance lies in [value, upper]
    double upper;
    uint32 search;  // number of the search that found it, from 1
};

// Lives in the memory of the filter.
struct FilteredScan {
    PlanState* filter;  // the KnnFilter
    double pass_rate;   // share of the scan's rows that the planner expects to pass, of those within its bound
    // Since the last rescan:
    bool merges;    // rows of a later search may be nearer than rows before: the filter puts them in order
    uint64 passed;  // rows that passed
    ScannedRow row;
    IndexScanDesc scan;
};

// The most rows of an approximate search for a filter: its recall was measured for no more.
inline constexpr double most_approximate = 1000;

// The number of rows of which `wanted` are expected to pass, with a margin. It goes by the share that the planner
// expects; where the filter has `seen` rows, by the share of them that passed.
uint32 rows_for_filter(const FilteredScan& filter, int64 wanted, uint64 seen);

// Rows that the first search of a scan is for.
uint32 first_wanted(const LimitHint& hint);

// The distance of a row that the scan returned, from its heap row. False: the scan's snapshot doesn't see it.
bool scanned_row_distance(IndexScanDesc scan, Tid tid, double* distance);

}  // namespace pgwarp
