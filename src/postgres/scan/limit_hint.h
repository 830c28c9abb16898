// The number of rows that a plan will read from an index scan: the number of the LIMIT above the scan, or all. The
// executor gives this to the scan, since an access method sees neither plan nor LIMIT.
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

// A LIMIT that takes every row of a node as it is: it never reads more rows of the node than count and offset, so a
// Sort may drop the others. `limit` is null when that isn't certain.
struct TupleBound {
    const LimitState* limit;
};

// The part of a node's rows that the plan above it reads.
enum class Reading : uint8 {
    some,         // the plan may stop after any row
    all_at_once,  // all of them, except in a cursor, which may be read in part
    all,
};

// The rows without a distance that a scan returns before all others, in this order. The rest come after all others:
// those whose distance is not a number, then NULLs.
struct Leading {
    bool nulls;
    bool nans;
};

inline bool leads(const Leading& leading)
{
    return leading.nulls || leading.nans;
}

// The plan above a scan, as far as it is known. Allocated in the memory of the query. `limit` is null when there is no
// LIMIT above the scan. The LIMIT tells the likely number of rows: the plan may read more when a node between drops
// some.
struct LimitHint {
    const LimitState* limit;
    TupleBound bound;
    PlanState* node;       // of the scan
    bool filtered;         // rows are filtered between the scan and the LIMIT
    double pass_rate;      // expected share of rows that pass the other filters than the KnnFilter; set under a LIMIT
    Reading reading;       // of the plan
    Reading above_limit;   // of the plan above the LIMIT, which a LIMIT without a number hands on
    bool reads_all;        // this execution reads all rows
    bool unlimited_all;    // this execution reads all rows where the LIMIT has no number
    FilteredScan* filter;  // shared with the KnnFilter above the scan, or null
    PartitionSearch* partitions;  // the scans of partitions that are searched together with this one, or null
    uint32 partition;             // the scan's number among these
    Leading leading;
};

// The number of rows that the LIMIT reads in this execution; 0 when it has no number.
int64 limit_hint_rows(const LimitHint& hint);
// The number of the LIMIT itself, which is the size of a page whatever its OFFSET. When it has no number: the greatest
// one where all rows are read, otherwise 0.
int64 limit_page_rows(const LimitHint& hint);
// The number of rows of the scan, or of the KnnFilter above it, that the LIMIT is expected to read; 0 when it has no
// number.
int64 rows_for_limit(const LimitHint& hint);

// The most rows that the node returns in this execution, for ExecSetTupleBound(); -1 when there is no such number.
int64 tuples_needed(const TupleBound& bound);

// Gives the scan of a pgwarp index the hint, before the first row is fetched. Without the call the scan has no hint.
void give_hint(IndexScanDesc scan, const LimitHint& hint);

}  // namespace pgwarp
