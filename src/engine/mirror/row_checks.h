// Whether rows and queries are such as an index of a shape holds: their layout, width and attributes, and what lists
// hold. What dense rows hold is checked, and normalised, where they lie for good (vectors.h).
#pragma once

#include "protocol/rows.h"

namespace pgwarp
{

// Throws BadRequest.
void check_rows(const IndexShape& shape, const RowView& rows);

// The same for queries, with what dense ones hold. Throws BadRequest.
void check_query_rows(const IndexShape& shape, const RowView& queries);

}  // namespace pgwarp
