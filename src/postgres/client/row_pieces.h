// Rows of any shape as pieces of a request.
#pragma once

#include "postgres/client/connection.h"
#include "protocol/rows.h"

namespace pgwarp
{

inline constexpr int most_row_pieces = 4;

// Describes rows as the pieces of one block (protocol/rows.h), which stay in place; returns the number of pieces.
// Offsets of lists that do not begin at 0 are copied, palloc'ed.
int row_pieces(const RowView& rows, RequestPiece pieces[most_row_pieces]);

// Returns a palloc'ed copy.
RowView copy_rows(const RowView& rows);

// Fills the request's description of its queries: their number and shape.
void describe_queries(const RowView& queries, SearchRequest* request);

}  // namespace pgwarp
