#include "postgres/functions/batch_pipeline.h"

#include "postgres/functions/query_answer.h"

namespace pgwarp
{

BatchPipeline* make_pipeline(SearchTarget* target, uint32 k, bool rows, FillBatch fill, void* state)
{
    auto* pipeline = static_cast<BatchPipeline*>(palloc0(sizeof(BatchPipeline)));
    pipeline->target = target;
    pipeline->fill = fill;
    pipeline->state = state;
    pipeline->current = make_query_batch(target, k, rows);
    pipeline->next = make_query_batch(target, k, rows);
    return pipeline;
}

QueryBatch* next_answers(BatchPipeline* pipeline)
{
    if (!pipeline->begun) {
        pipeline->fill(pipeline->next, pipeline->state);
        start_batch(pipeline->target, pipeline->next);
        pipeline->begun = true;
    }
    QueryBatch* batch = pipeline->next;
    pipeline->next = pipeline->current;
    pipeline->current = batch;
    if (batch->count == 0) return nullptr;
    clear_query_batch(pipeline->target, pipeline->next);
    pipeline->fill(pipeline->next, pipeline->state);
    answer_batch(pipeline->target, batch, pipeline->next);
    return batch;
}

}  // namespace pgwarp
