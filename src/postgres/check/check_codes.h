// Compares the codes of filter columns that an index keeps with those of its table's rows. Both are sorted by address,
// in memory and temporary files.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

struct CodeCheck;
// Allocated in the current memory context; null for an index without filter columns.
CodeCheck* begin_code_check(Relation index);
void take_stored_codes(CodeCheck* check, Tid tid, const uint64* codes);
// Takes a row of the table, by the values of all columns of the index.
void take_row_codes(CodeCheck* check, Tid tid, const Datum* values, const bool* nulls);
// Raises an error for a row whose stored codes are others. Rows that only one side has are skipped.
void compare_codes(CodeCheck* check);
void end_code_check(CodeCheck* check);

}  // namespace pgwarp
