// Rows of any shape as pieces of a request.
#pragma once

#include "postgres/client/connection.h"
#include "protocol/rows.h"

namespace pgwarp
{

inline constexpr int most_row_pieces = 4;

// Describes rows as the pieces of one block (protocol/rows.h), which stay where they are; returns the number of pieces.
// Offsets of lists that don't begin at 0 are written anew, palloc'ed.
int row_pieces(const RowView& rows, RequestPiece pieces[most_row_pieces]);

// A palloc'ed copy.
RowView copy_rows(const RowView& rows);

// Says in a request for searches what its queries are.
void describe_queries(const RowView& queries, SearchRequest* request);

}  // namespace pgwarp
