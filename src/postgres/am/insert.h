// aminsert: appends a new row to a delta log. Neither the engine nor the method takes part.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

bool pgwarp_aminsert(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation heap,
                     IndexUniqueCheck unique, bool unchanged, IndexInfo* info);

}  // namespace pgwarp
