// EXPLAIN (ANALYZE) of searches with keys or a bitmap: the number of rows that pass, and how the engine searched among
// them.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/scan/search_reply.h"

extern "C" {
#include "commands/explain.h"
}

namespace pgwarp
{

// Shows what was noted; nothing where no search had keys or a bitmap.
void explain_keys(const KeyedSearches& searches, bool by_bitmap, ExplainState* explanation);

}  // namespace pgwarp
