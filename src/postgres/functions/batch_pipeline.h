// Batches of queries in sequence: while the backend looks up the rows of one batch, the engine searches for the next.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Adds queries to an empty batch until it is full or no query is left.
using FillBatch = void (*)(QueryBatch* batch, void* state);

struct BatchPipeline {
    SearchTarget* target;
    FillBatch fill;
    void* state;
    QueryBatch* current;
    QueryBatch* next;
    bool begun;
};

// Makes a pipeline in the current memory context. rows: queries are rows of the table.
BatchPipeline* make_pipeline(SearchTarget* target, uint32 k, bool rows, FillBatch fill, void* state);

// Returns the next batch with its answers; null at the end. Valid until the next call.
QueryBatch* next_answers(BatchPipeline* pipeline);

}  // namespace pgwarp
