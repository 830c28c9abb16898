// How many rows a plan will ask an index scan for: as many as the LIMIT above it takes, or all. An access method sees
// neither.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "access/genam.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

struct FilteredScan;
struct PartitionSearch;

// A LIMIT that takes every row of a node as it is: the node is never asked for more rows than count and offset, so a
// Sort may forget the others. `limit` is null where that isn't certain.
struct TupleBound {
    const LimitState* limit;
};

// How many of a node's rows the plan above it reads.
enum class Reading : uint8 {
    some,         // it may stop anywhere
    all_at_once,  // all of them, unless the query is a cursor, which may be read in part
    all,
};

// The plan above a scan, as far as it is known. It lives in the memory of the query. `limit` is null when there is no
// LIMIT above it. It says how many rows are likely asked for: more may be, where some are dropped on the way.
struct LimitHint {
    const LimitState* limit;
    TupleBound bound;
    PlanState* node;       // of the scan
    bool filtered;         // rows are filtered between the scan and the LIMIT
    double pass_rate;      // share of the rows that the planner expects to pass, but for the KnnFilter; with a LIMIT
    Reading reading;       // by the plan
    bool reads_all;        // by this execution
    FilteredScan* filter;  // shared with the KnnFilter above the scan, or null
    PartitionSearch* partitions;  // the scans that are searched for together with this one, or null
    uint32 partition;             // its number there
};

// Rows that the LIMIT asks for now; 0 when it has none.
int64 limit_hint_rows(const LimitHint& hint);
// Rows of the scan, or of the KnnFilter above it, that the LIMIT is expected to take; 0 when it has no number.
int64 rows_for_limit(const LimitHint& hint);

// Rows that the node is asked for at most, now, as ExecSetTupleBound() takes them; -1 when there is no such number.
int64 tuples_needed(const TupleBound& bound);

// Gives the scan of a pgwarp index the hint about the plan above it, before the first row is fetched. Without the call
// the scan has no hint.
void give_hint(IndexScanDesc scan, const LimitHint& hint);

}  // namespace pgwarp
