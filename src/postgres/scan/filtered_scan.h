// State that a KnnFilter shares with the scan below it. An access method sees neither LIMIT nor filter. Therefore the
// filter tells the scan the number of rows that it needs and the share that passes, and the scan's first search is deep
// enough. The scan describes each row by its distance and by the search that found it, so the filter knows which rows
// it may return.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/bitmap/search_tids.h"
#include "postgres/scan/limit_hint.h"
#include "postgres/scan/search_reply.h"
#include "protocol/format.h"

extern "C" {
#include "access/relscan.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Description of the row that the scan returned last.
struct ScannedRow {
    bool known;      // false: the scan gives no description, and rows come in the scan's own order
    bool unordered;  // every order is right, and there is no distance: NULL queries, zero vectors under cosine
    bool in_order;   // no later row is nearer
    bool confirmed;  // the search was deep enough for this row: only its recall makes it miss nearer rows
    bool enough;     // the LIMIT gets all its rows from this search, which is the first
    bool null_key;   // the index's key is NULL in this row and all later ones
    Tid tid;         // as the index stores it
    double value;    // the distance lies in [value, upper]
    double upper;
    uint32 search;  // number of the search that found the row, from 1
    bool leading;   // the row has no distance, and comes before all that have one
};

// Allocated in the memory of the filter's plan state.
struct FilteredScan {
    PlanState* filter;    // the KnnFilter
    KeyedSearches keyed;  // of the scan
    double pass_rate;     // share of the scan's rows within its distance bound that the planner expects to pass
    // Since the last rescan:
    bool bounded;            // rows without a distance, or with one beyond `within`, do not pass
    double within;           // infinity where the distance has no bound
    bool merges;             // rows of a later search may be nearer than earlier rows: the filter sorts them
    bool described;          // the filter reads descriptions of rows
    uint64 passed;           // rows that passed
    const SearchTids* tids;  // only rows with these addresses can pass; null: any row may
    ScannedRow row;          // while rows are described
    IndexScanDesc scan;
};

// The most rows of an approximate search below a filter. Calibrations measure recall up to this number only.
inline constexpr double most_approximate = 1000;

// The number of rows to search for so that `wanted` of them are expected to pass, with a margin. Uses the share that
// the planner expects; when the filter has `seen` rows, the share of these that passed.
uint32 rows_for_filter(const FilteredScan& filter, int64 wanted, uint64 seen);

// The number of rows that the first search of a scan is for.
uint32 first_wanted(const LimitHint& hint);

// Computes the distance by which a row is ordered from its heap row; for NaN an infinity. False when the scan's
// snapshot doesn't see the row.
bool scanned_row_distance(IndexScanDesc scan, Tid tid, double* distance);

// Makes the scan offer no further row whose distance is a number, where it knows them from the others.
void skip_placed_rows(IndexScanDesc scan);

}  // namespace pgwarp
