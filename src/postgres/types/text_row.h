// Text as rows of an index: views of packed words (protocol/text_rows.h).
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

// Returns a view of one row that is a list of these words. It points to them and to palloc'ed memory.
RowView one_list_row(const uint32* words, uint32 count);
// Packs a text into a palloc'ed row. Raises 54000 for more than max_text_characters characters.
RowView read_text_row(Datum text);
// Returns the distance of a row of text, alone in its view, to a text, as the operator <~~> does.
double text_row_distance(const RowView& row, Datum text);

}  // namespace pgwarp
