// What a merge does, and why.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

enum class MergeKind {
    none,      // nothing to do
    append,    // the arrays grow by the rows of the logs
    compact,   // the same, and rows that are dead are left out: all arrays are written anew
    rebuild,   // all rows are encoded anew, by quantizers trained on them
    clear,     // no placed row is alive
    unplaced,  // only the unplaced rows are written anew
};

struct MergeOutcome {
    MergeKind kind;
    uint64 merged;  // rows out of the logs
};

enum class MergeReason {
    asked,
    vacuum,
    room,  // most of the file is free: what the index has is written anew to its front
};

}  // namespace pgwarp
