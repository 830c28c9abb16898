// Checks of rows and queries against the shape of an index: layout, width, attributes, and the values of lists. Values
// of dense rows are checked, and normalised, in the copy that the engine keeps (vectors.h).
#pragma once

#include "protocol/rows.h"

namespace pgwarp
{

// Throws BadRequest.
void check_rows(const IndexShape& shape, const RowView& rows);

// The same for queries, with the values of dense ones. Throws BadRequest.
void check_query_rows(const IndexShape& shape, const RowView& queries);

}  // namespace pgwarp
