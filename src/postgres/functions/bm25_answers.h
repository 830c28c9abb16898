// Answers of bm25_query(), kept for a statement. Other sessions change the statistics while it runs, but all its calls
// with the same arguments must have one answer: the scans of partitions are merged by the distances that it makes.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/types/attributes.h"

namespace pgwarp
{

// Returns the answer to a call with these arguments under this snapshot, or null. It stays until the next call of
// keep_answer().
const PartsValue* find_answer(FunctionCallInfo fcinfo);
// Keeps a copy of an answer, and returns it.
const PartsValue* keep_answer(FunctionCallInfo fcinfo, const PartsValue* query);

}  // namespace pgwarp
