// The kinds of merges, and the reasons for them.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

enum class MergeKind {
    none,      // nothing to do
    append,    // the arrays grow by the rows of the logs
    compact,   // the same, and dead rows are left out: all arrays are written again
    rebuild,   // all rows are encoded again, with quantizers trained on them
    clear,     // no placed row is alive
    unplaced,  // only the unplaced rows are written again
};

struct MergeOutcome {
    MergeKind kind;
    uint64 merged;  // rows taken from the logs
};

enum class MergeReason {
    asked,
    vacuum,
    room,  // most of the file is free: the index is written again, to the front of the file
};

}  // namespace pgwarp
