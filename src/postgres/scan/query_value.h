// Queries: one row in the form of the SQL operator, and in the form that the engine takes. Both are views of one row of
// any layout, so that callers need not tell vectors from lists.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/element_type.h"

namespace pgwarp
{

// Returns the number of dimensions that queries of the index must have, as SQL counts them; 0 for rows without.
int query_length(ElementType element, Relation index);

// Returns a value as a view of one row; a view without rows where copy_query() raises an error. The memory is the
// value's own or palloc'ed.
RowView view_query(const KeyType& key, Datum value, int length);
// Returns a palloc'ed copy of a value. Raises an error for a vector of other than `length` dimensions, and for a list
// that is too long.
RowView copy_query(const KeyType& key, Datum value, int length);
// Returns a palloc'ed query for scans whose order is arbitrary: zeros[width], or an empty text or list.
RowView blank_query(ElementType element, uint32 width);

// Writes the form that the engine takes to sent[dimensions]: of unit length under cosine. False when every order of
// rows is right (a zero vector under cosine): then `sent` is an arbitrary vector.
bool prepare_query(Metric metric, const float* query, uint32 dimensions, float* sent);
// The same for a query of any layout. `*sent` is palloc'ed or shares the memory of `query`.
bool prepare_query(Metric metric, const RowView& query, RowView* sent);

// Queries in the form that the engine takes, collected for requests.
struct QueryRows {
    RowView rows;  // without their number: the owner counts them
    float* values;
    uint64* offsets;
    uint32* words;
    float* weights;  // of words that have some
    uint64 most_words;
};
// Allocates room for this number of queries in the current memory context.
QueryRows make_query_rows(ElementType element, uint32 width, uint32 most_queries);
// Writes a query to position `at`; positions before it are written. Returns what prepare_query() returns.
bool put_query(QueryRows* queries, uint32 at, Metric metric, const RowView& query);

}  // namespace pgwarp
