// Batches of queries one after the other: while the rows of one are looked up here, the engine searches for the next.
#pragma once

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// Adds queries to an empty batch until it is full or there are no more.
using FillBatch = void (*)(QueryBatch* batch, void* state);

struct BatchPipeline {
    SearchTarget* target;
    FillBatch fill;
    void* state;
    QueryBatch* current;
    QueryBatch* next;
    bool begun;
};

// Allocated in the current memory context. rows: queries are rows of the table.
BatchPipeline* make_pipeline(SearchTarget* target, uint32 k, bool rows, FillBatch fill, void* state);

// The next batch, answered; null at the end. Good until the next call.
QueryBatch* next_answers(BatchPipeline* pipeline);

}  // namespace pgwarp
