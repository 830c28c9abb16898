// Answers fetched ahead for the outer rows of a k-NN join: KnnBatch fills the caches; the index scan on the inner side
// takes its answer from them. The cache is a hint: a scan without an answer searches by itself. The caches of a query
// lie in the query's memory and are found through it. So a scan takes an answer only of its own query, that is of the
// same snapshot; and the answer must be of the same index, for the query vector of the present outer row, searched
// under the present settings.
#pragma once

#include "methods/description.h"
#include "numeric/metric.h"
#include "postgres/am/method_settings.h"
#include "postgres/executor/answer_filter.h"
#include "postgres/scan/heap_prefetch.h"
#include "postgres/scan/search_reply.h"
#include "protocol/parameters.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

inline constexpr uint32 no_query = UINT32_MAX;

struct BatchKeys;

// For EXPLAIN ANALYZE.
struct AnswerCacheCounts {
    uint64 requests;
    uint64 queries;
    uint64 hits;      // scans that began with an answer fetched ahead
    uint64 deepened;  // scans that needed more rows than were fetched ahead
    uint64 engine_ns;
    bool on_cuda;
    KeyedSearches keyed;
    ParameterList settings;  // of the last request
};

// The settings that a search depends on. They may change during a long-running statement, such as a cursor.
struct SearchSettings {
    double recall;
    SettingsImage method;
    int64 alias_effort;
};

// One index's answers for the rows of a batch. The KnnBatch node owns it; it lies in the node's memory.
struct AnswerCache : JoinAnswers {
    const EState* executor;  // only scans of this execution use the cache
    Relation index;
    const MethodDescription* method;  // of the index
    Metric metric;
    uint32 dimensions;                 // 0: of text
    MemoryContext context;             // of the batch
    RowView queries;                   // [count], in the form that the engine expects
    const QueryPredicate* predicates;  // [count], or null
    BatchKeys* noted_keys;             // which take values of scans that begin; or null
    double within;                     // the largest distance that the answers are for
    BatchAnswer* answers;              // [count]
    uint32 count;
    SearchSettings settings;  // that the answers were searched under
    uint32 current;           // the query of the present outer row, or no_query
    uint32 wanted;            // rows requested for each answer
    uint32 next_wanted;       // rows to request for each answer of the next batch
    uint32 least_wanted;
    bool is_filtered;   // below the LIMIT: a search goes to the requested depth at once, not rung by rung
    BatchAhead* ahead;  // the following batch, if it was begun
    SearchSettings ahead_settings;
    uint32 used;                // scans that used an answer of this batch
    uint32 short_rows;          // of these, scans that needed more rows than the answer had
    uint32 most_taken;          // by any scan of this batch
    uint64 sum_taken;           // by all scans of this batch
    const BatchAnswer* taking;  // the answer that the present scan reads
    double usually_taken;       // by a scan on average, in the last batch with scans
    AnswerFilter* filter;       // of the scans of this batch or an earlier one
    BatchAnswer* filtered;      // [count], the answers after the filter; null until the batch is filtered
    uint32 filter_depth;        // results of an answer that the filter was evaluated for
    uint32 usually_kept;        // results of these that the filter keeps
    bool never_filtered;        // the filter cannot be evaluated ahead, or need not be
    HeapPrefetch near;          // rows of the next query
    uint32 near_query;
    Relation near_heap;  // of these rows, or null; prefetching from another one begins anew
    bool prefetches;     // from this heap
    AnswerCacheCounts counts;
    AnswerCache* next;
};

// Lets the scans of the cache's query use it, until it is unregistered or the query's memory is freed.
void register_answer_cache(AnswerCache* cache);
// Ends that; the cache itself stays.
void unregister_answer_cache(AnswerCache* cache);

// Forgets the batch, and derives from it the number of rows to request for the next one.
void reset_answer_cache(AnswerCache* cache);
// Searches for all queries of the batch. The indexes of a join share one request if they search for the same queries.
void fill_answer_caches(AnswerCache* caches, uint32 count);
// Begins the search for the following batch, so that the engine works on it while the present batch is joined. Requests
// and answers lie in `context`.
void begin_next_batch(AnswerCache* cache, const RowView& queries, const QueryPredicate* predicates, double within,
                      BatchAhead* ahead, MemoryContext context);
// Returns the number of queries that fit one request at the next batch's depth: begin_next_batch() takes no more.
uint32 most_queries_ahead(const AnswerCache& cache);
// Gives up a begun batch.
void drop_next_batch(AnswerCache* cache);
// The counterpart of fill_answer_caches() for a begun batch. Returns false if its answers were lost; then it has
// searched for them again.
bool take_next_batch(AnswerCache* cache);

// Returns a cache of the index with answers for the present outer row; null if there is none.
AnswerCache* find_answer_cache(const EState* executor, Relation index);
// Lets the caches of the index take values of the keys of a scan that begins.
void note_keys_of_scan(const EState* executor, Relation index, const ScanKeyData* keys, int count);
// Returns such a cache whose answer is to this query; null if there is none.
AnswerCache* find_answering_cache(const EState* executor, Relation index, const ScanQuery& query);
// Whether the answer to the present row is to this query, at least as far, under the present settings.
bool answers_query(const AnswerCache* cache, const ScanQuery& query);
// Returns that answer, and begins to prefetch its rows. If scans took many more rows than their LIMIT, results that the
// scan's filter is known to drop are left out.
const BatchAnswer* take_cached_answer(AnswerCache* cache, const AnsweredScan& scan);
// The same with at least `wanted` rows, for a scan that needs more than it got. If many scans need more, the answers of
// later rows are deepened too.
const BatchAnswer* deepen_cached_answer(AnswerCache* cache, const AnsweredScan& scan, uint32 wanted);

}  // namespace pgwarp
