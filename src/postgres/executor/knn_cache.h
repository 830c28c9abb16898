// Answers fetched ahead for the outer rows of a k-NN join: KnnBatch fills them, the index scan on the inner side finds
// its own there. Only a hint: what isn't found is searched for as always.
#pragma once

#include "numeric/metric.h"
#include "postgres/access/heap_prefetch.h"
#include "postgres/engine/batch_search.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

inline constexpr uint32 no_query = UINT32_MAX;

// What EXPLAIN ANALYZE tells.
struct KnnCacheCounts {
    uint64 requests;
    uint64 queries;
    uint64 hits;      // scans that began with an answer fetched ahead
    uint64 deepened;  // scans that needed more rows than were fetched ahead
    uint64 engine_ns;
    bool on_cuda;
    ParameterList settings;  // of the last request
};

// One index's answers for the rows of a batch. Owned by its KnnBatch node; in its memory.
struct KnnCache {
    const EState* executor;  // only its scans may look
    Relation index;
    Metric metric;
    uint32 dimensions;
    MemoryContext context;  // of the batch
    float* queries;         // [count][dimensions], as the engine wants them
    BatchAnswer* answers;   // [count]
    uint32 count;
    uint32 current;      // the query of the outer row that is being joined, or no_query
    uint32 wanted;       // rows that the answers were asked for
    uint32 next_wanted;  // rows that the next batch will ask for
    uint32 least_wanted;
    BatchAhead* ahead;  // the batch after this one, if it was begun
    MemoryContext ahead_context;
    uint32 used;  // rows of this batch that were looked up, and how many of them needed more
    uint32 short_rows;
    uint32 taken;       // rows that the current scan took
    uint32 most_taken;  // by any scan of this batch
    HeapPrefetch near;  // rows of the query that comes next
    uint32 near_query;
    KnnCacheCounts counts;
    KnnCache* next;
};

// The scans of `executor` may look into the cache from now on, until it is unregistered or `query_context` goes.
void register_knn_cache(KnnCache* cache, MemoryContext query_context);
void unregister_knn_cache(KnnCache* cache);

// Forgets the batch, and learns from it how many rows to ask for in the next one.
void reset_knn_cache(KnnCache* cache);
// Searches for all queries of the batch: in all indexes of a join together, as far as they want the same queries.
void fill_knn_caches(KnnCache* caches, uint32 count);
// The same for the batch after this one, `vectors[count]`, so that the engine works on it while this one is joined.
// What it needs is kept in `context`.
void begin_next_batch(KnnCache* cache, const float* vectors, uint32 count, BatchAhead* ahead, MemoryContext context);
// Takes the replies that are on their way: another request would throw them away.
void keep_next_batches();
// As fill_knn_caches(), for a batch that was begun. False when its answers are gone; they were searched for anew.
bool take_next_batch(KnnCache* cache);

// The cache with an answer for the row that is being joined, if any.
KnnCache* find_knn_cache(const EState* executor, Relation index);
// That answer: null when it isn't to this query. The rows of `heap` that are fetched next are brought near, unless it
// is null.
const BatchAnswer* find_knn_answer(KnnCache* cache, Relation heap, const float* query, uint32 dimensions);
// The same with at least `wanted` rows, for a scan that needs more than it got: for the rows that follow too, when many
// do.
const BatchAnswer* deepen_knn_answer(KnnCache* cache, uint32 wanted);

}  // namespace pgwarp
