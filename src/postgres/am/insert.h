// aminsert: appends a new row to a delta log. An insert needs no engine; a running engine gets the row too, without a
// wait for its reply.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Takes the values of all columns of the index. Returns false: the index is never unique.
bool pgwarp_aminsert(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation heap,
                     IndexUniqueCheck unique, bool unchanged, IndexInfo* info);

}  // namespace pgwarp
