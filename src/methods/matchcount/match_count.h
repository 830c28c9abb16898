// The match-count model and its inverted index (GENIE, sections 3 and 4): a row is a list of keywords, a query a set of
// items, an item a range of keywords; the match count of a row is the number of (item, element) pairs where the item
// contains the element (definition 3.1). Searches return the rows of largest count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/count_workspace.h"
#include "methods/matchcount/keyword_lists.h"
#include "methods/row_bitmap.h"

namespace pgwarp::matchcount
{

// The result of one query.
struct MatchCounts {
    std::vector<CountedRow> rows;  // by count, descending; ties by row
    // The AuditThreshold of the count priority queue at the end (section 4.2, theorem 4.1): one more than the k-th
    // count; where fewer than k rows match the least count of interest, at least 1.
    std::uint32_t audit_threshold = 1;
    std::uint32_t passed_rows = 0;  // the gate: at most k * audit_threshold, where no row is left out
};

// Returns the k live rows of largest count, ties by row; rows of count 0 follow in row order where fewer match. By a
// count priority queue: counters of just enough bits, a gate, and a table of the rows that passed it (algorithm 1).
// `dead` may be empty. Throws BadRequest where a count might exceed 2^31 - 1, and Cancelled.
MatchCounts search_counts(const KeywordLists& lists, std::span<const Item> items, std::uint32_t k, RowBitmap dead,
                          CountWorkspace& workspace, const CountOptions& options = {});

// Returns a bound of the count of every row. Throws BadRequest where it exceeds 2^31 - 1.
std::uint32_t count_bound(const KeywordLists& lists, std::span<const Item> items);

}  // namespace pgwarp::matchcount
