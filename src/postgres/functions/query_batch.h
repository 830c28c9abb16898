// A batch of queries that are answered together, and their answers.
#pragma once

#include "postgres/client/loader.h"
#include "postgres/functions/search_target.h"

namespace pgwarp
{

// A row of an answer.
struct Neighbour {
    Tid tid;  // of the visible tuple
    double distance;
};

// The first search for a whole batch, begun ahead.
struct BatchStart {
    SearchRequest request;
    RequestAhead ahead;
    uint32 wanted;
    bool complete;  // the method's searches find every row
    char* reply;    // a reply that was received and not used yet; else null
    uint32 reply_bytes;
};

// Queries that fit one request, and their answers.
struct QueryBatch {
    uint32 k;
    uint32 dimensions;
    uint32 allocated;  // queries that memory was allocated for
    uint32 capacity;   // queries that fit one request; at most `allocated`
    uint32 count;
    int64* numbers;       // [allocated] the caller's numbers of the queries
    Tid* own;             // [allocated] the row that a query is, left out of its answer; null if queries are not rows
    bool* arbitrary;      // [allocated] all rows are equally near: the zero vector under cosine
    float* queries;       // [allocated][dimensions] in the operator's form
    float* sent;          // [allocated][dimensions] in the engine's form: normalised under cosine
    Neighbour* found;     // [allocated][k]
    uint32* found_count;  // [allocated]
    BatchStart* start;
};

// Makes an empty batch in the current memory context. rows: queries are rows of the table.
QueryBatch* make_query_batch(const SearchTarget* target, uint32 k, bool rows);
// Empties the batch; its capacity adapts to the spare rows of the target.
void clear_query_batch(const SearchTarget* target, QueryBatch* batch);

// Adds a query; the batch must not be full. The caller has checked the vector's dimensions.
void add_query(QueryBatch* batch, const SearchTarget* target, int64 number, const float* vector);

// Returns the number of rows that the first search for the batch wants for each query.
uint32 rows_searched_first(const SearchTarget* target, const QueryBatch* batch);

}  // namespace pgwarp
