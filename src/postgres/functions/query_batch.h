// Many queries that are answered together, and their answers.
#pragma once

#include "postgres/client/loader.h"
#include "postgres/functions/search_target.h"

namespace pgwarp
{

struct Neighbour {
    Tid tid;  // of the visible tuple
    double distance;
};

// The first search for a whole batch, begun ahead of its time.
struct BatchStart {
    SearchRequest request;
    RequestAhead ahead;
    uint32 wanted;
    bool complete;  // the method's searches leave no row out
    char* reply;    // when it is here already, and wasn't used yet
    uint32 reply_bytes;
};

// Queries that fit one request, and their answers.
struct QueryBatch {
    uint32 k;
    uint32 dimensions;
    uint32 allocated;  // queries that there is memory for
    uint32 capacity;   // of them, that fit one request
    uint32 count;
    int64* numbers;       // [allocated] by which the caller knows a query
    Tid* own;             // [allocated] the row that a query is, left out of its answer; null when queries are no rows
    bool* arbitrary;      // [allocated] every order of rows is right: the zero vector under cosine
    float* queries;       // [allocated][dimensions] as the operator sees them
    float* sent;          // the same as the engine wants them: normalised under cosine
    Neighbour* found;     // [allocated][k]
    uint32* found_count;  // [allocated]
    BatchStart* start;
};

// An empty batch in the current memory context. rows: queries are rows of the table.
QueryBatch* make_query_batch(const SearchTarget* target, uint32 k, bool rows);
void clear_query_batch(const SearchTarget* target, QueryBatch* batch);

// Adds a query; there must be room. The vector's dimensions were checked.
void add_query(QueryBatch* batch, const SearchTarget* target, int64 number, const float* vector);

// Rows that the first search for the batch is for, of each query.
uint32 rows_searched_first(const SearchTarget* target, const QueryBatch* batch);

}  // namespace pgwarp
