// Answers fetched ahead for the outer rows of a k-NN join: KnnBatch fills them, the index scan on the inner side finds
// its own there. The cache is a hint: a scan without an answer searches by itself. The caches of a query lie in its
// memory and are found there: an answer is for scans of the same query, that is of the same snapshot, of the same
// index, for the very query vector of the row that is being joined, under the settings that it was searched with.
#pragma once

#include "numeric/metric.h"
#include "postgres/executor/answer_filter.h"
#include "postgres/scan/heap_prefetch.h"
#include "protocol/parameters.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

inline constexpr uint32 no_query = UINT32_MAX;

// For EXPLAIN ANALYZE.
struct AnswerCacheCounts {
    uint64 requests;
    uint64 queries;
    uint64 hits;      // scans that began with an answer fetched ahead
    uint64 deepened;  // scans that needed more rows than were fetched ahead
    uint64 engine_ns;
    bool on_cuda;
    ParameterList settings;  // of the last request
};

// The settings that a search depends on. They may change during a statement that goes on for long, as a cursor does.
struct SearchSettings {
    double recall;
    ParameterList parameters;  // of the method
};

// One index's answers for the rows of a batch. Owned by its KnnBatch node; in its memory.
struct AnswerCache : JoinAnswers {
    const EState* executor;  // only its scans may look
    Relation index;
    Metric metric;
    uint32 dimensions;
    MemoryContext context;  // of the batch
    RowView queries;        // [count], as the engine wants them
    BatchAnswer* answers;   // [count]
    uint32 count;
    SearchSettings settings;  // that the answers are for
    uint32 current;           // the query of the outer row that is being joined, or no_query
    uint32 wanted;            // rows that the answers were asked for
    uint32 next_wanted;       // rows that the next batch will ask for
    uint32 least_wanted;
    bool is_filtered;   // below the LIMIT: searches are as deep as they are asked to be, not rung by rung
    BatchAhead* ahead;  // the batch after this one, if it was begun
    SearchSettings ahead_settings;
    uint32 used;  // rows of this batch that were looked up, and how many of them needed more
    uint32 short_rows;
    uint32 most_taken;          // by any scan of this batch
    uint64 sum_taken;           // by all of them
    const BatchAnswer* taking;  // the answer whose rows the current scan takes
    double usually_taken;       // by a scan, in the last batch that had any
    AnswerFilter* filter;       // of the scans of this batch or an earlier one
    BatchAnswer* filtered;      // [count], the answers that it lets through; null until the batch was filtered
    uint32 filter_depth;        // results of an answer that it was evaluated for
    uint32 usually_kept;        // of these
    bool never_filtered;        // it can't be, or needn't
    HeapPrefetch near;          // rows of the query that comes next
    uint32 near_query;
    AnswerCacheCounts counts;
    AnswerCache* next;
};

// The scans of the cache's query may look into it from now on, until it is unregistered or the query's memory goes.
void register_answer_cache(AnswerCache* cache);
void unregister_answer_cache(AnswerCache* cache);

// Forgets the batch, and learns from it how many rows to ask for in the next one.
void reset_answer_cache(AnswerCache* cache);
// Searches for all queries of the batch: in all indexes of a join together, as far as they want the same queries.
void fill_answer_caches(AnswerCache* caches, uint32 count);
// The same for the queries of the batch after this one, so that the engine works on it while this one is joined.
// Requests and answers are kept in `context`.
void begin_next_batch(AnswerCache* cache, const RowView& queries, BatchAhead* ahead, MemoryContext context);
// Queries that one request has room for, as many rows as the next batch will ask for: only such a batch can be begun.
uint32 most_queries_ahead(const AnswerCache& cache);
// Gives up a batch that was begun.
void drop_next_batch(AnswerCache* cache);
// As fill_answer_caches(), for a batch that was begun. False when its answers are gone; they were searched for anew.
bool take_next_batch(AnswerCache* cache);

// A cache of the index with answers for the row that is being joined, if any.
AnswerCache* find_answer_cache(const EState* executor, Relation index);
// Among these the one with an answer to this query.
AnswerCache* find_answering_cache(const EState* executor, Relation index, const RowView& query);
// Whether the answers to the current row are to this query, under the settings of now.
bool answers_query(const AnswerCache* cache, const RowView& query);
// That answer. The rows that are fetched next are brought near. Where scans took many more rows than their LIMIT asks
// for, it is without those that the scan's filter would drop, as far as they are known.
const BatchAnswer* take_cached_answer(AnswerCache* cache, const AnsweredScan& scan);
// The same with at least `wanted` rows, for a scan that needs more than it got: for the rows that follow too, when many
// do.
const BatchAnswer* deepen_cached_answer(AnswerCache* cache, const AnsweredScan& scan, uint32 wanted);

}  // namespace pgwarp
