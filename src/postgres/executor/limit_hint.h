// How many rows a plan will ask an index scan for at most: the LIMIT above it. An access method never sees it.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Installs the ExecutorStart hook. Called by _PG_init.
void init_limit_hint();

struct PartitionSearch;

// What is known of the plan above a scan. `limit` is null when there is no LIMIT above it.
struct LimitHint {
    const LimitState* limit;
    bool filtered;                // rows are filtered between the scan and the LIMIT
    PartitionSearch* partitions;  // the scans that are searched for together with this one, or null
    uint32 partition;             // its number there
};

// The hint for the scan of `index` that is being begun. Called by ambeginscan; the pointer lives as long as the scan.
LimitHint take_limit_hint(Oid index);

// Rows that the LIMIT asks for now; 0 when it has none.
int64 limit_hint_rows(const LimitHint& hint);

}  // namespace pgwarp
