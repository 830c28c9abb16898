#include "postgres/executor/knn_cache.h"

#include "postgres/access/scan.h"
#include "postgres/engine/index_searches.h"

namespace pgwarp
{

namespace
{

constexpr uint32 most_wanted = 1024;  // ahead; a scan that needs more goes on alone
constexpr uint32 few_short_rows = 8;  // one in so many may need more without the others being asked again

KnnCache* caches = nullptr;  // of all running queries of this process

void forget_cache(void* argument)
{
    unregister_knn_cache(static_cast<KnnCache*>(argument));
}

bool many_are_short(const KnnCache& cache)
{
    return uint64{cache.short_rows} * few_short_rows > cache.used;
}

// Count the requests that answered.
void count_answers(KnnCache* cache, const BatchAnswer* found, uint32 count)
{
    const BatchPart* last = nullptr;
    for (uint32 i = 0; i < count; ++i) {
        if (found[i].part == nullptr || found[i].part == last) continue;
        last = found[i].part;
        cache->counts.requests++;
        cache->counts.engine_ns += last->reply.engine_ns;
        cache->counts.on_cuda = last->reply.on_cuda != 0;
        cache->counts.settings = last->reply.resolved;
    }
    cache->counts.queries += count;
}

BatchQueries make_queries(const KnnCache* cache, const float* vectors, uint32 count, uint32 wanted)
{
    return {cache->index, plan_placed_search, wanted, vectors, count, cache->dimensions};
}

// Search for queries [first, first + count) of the batch.
void search_queries(KnnCache* cache, uint32 first, uint32 count, uint32 wanted)
{
    keep_next_batches();
    MemoryContext outer = MemoryContextSwitchTo(cache->context);
    const float* vectors = cache->queries + uint64{first} * cache->dimensions;
    const BatchAnswer* found = search_batch(make_queries(cache, vectors, count, wanted));
    memcpy(cache->answers + first, found, sizeof(BatchAnswer) * count);
    count_answers(cache, found, count);
    MemoryContextSwitchTo(outer);
}

// Search for the batch in all indexes by one request. Caches that got no answers are left without.
void search_together(KnnCache* caches, uint32 count)
{
    KnnCache& first = caches[0];
    MemoryContext outer = MemoryContextSwitchTo(first.context);
    auto* searches = static_cast<IndexSearch*>(palloc0(sizeof(IndexSearch) * count));
    for (uint32 i = 0; i < count; ++i) searches[i] = {caches[i].index, caches[i].wanted, nullptr};
    IndexSearchCounts counts = {};
    search_indexes(plan_placed_search, searches, count, first.metric, first.queries, first.count, first.dimensions,
                   &counts);
    for (uint32 i = 0; i < count; ++i) caches[i].answers = searches[i].answers;
    first.counts.requests += counts.requests;
    first.counts.queries += counts.searches;
    first.counts.engine_ns += counts.engine_ns;
    first.counts.on_cuda = first.counts.on_cuda || counts.on_cuda;
    if (counts.requests > 0) first.counts.settings = counts.settings;
    MemoryContextSwitchTo(outer);
}

void note_taken(KnnCache* cache)
{
    cache->most_taken = Max(cache->most_taken, cache->taken);
    cache->taken = 0;
}

// Begin with the pages that one query's scan will read.
void bring_pages_near(KnnCache* cache, Relation heap, uint32 query)
{
    const BatchAnswer& answer = cache->answers[query];
    const uint32 expected = cache->most_taken > 0 ? cache->most_taken : cache->least_wanted;
    prefetch_pages(heap, answer.results, Min(answer.count, expected), &cache->near);
    cache->near_query = query;
}

// Have the rows of the current query near when they are fetched, and the pages of the next one in time.
void bring_near(KnnCache* cache, Relation heap)
{
    if (heap == nullptr || !may_prefetch(heap)) return;
    if (cache->near_query != cache->current) bring_pages_near(cache, heap, cache->current);
    prefetch_rows(cache->near);
    if (cache->current + 1 < cache->count) bring_pages_near(cache, heap, cache->current + 1);
}

}  // namespace

void register_knn_cache(KnnCache* cache, MemoryContext query_context)
{
    auto* callback =
        static_cast<MemoryContextCallback*>(MemoryContextAlloc(query_context, sizeof(MemoryContextCallback)));
    callback->func = forget_cache;
    callback->arg = cache;
    MemoryContextRegisterResetCallback(query_context, callback);
    cache->next = caches;
    caches = cache;
}

void unregister_knn_cache(KnnCache* cache)
{
    for (KnnCache** link = &caches; *link != nullptr; link = &(*link)->next) {
        if (*link == cache) {
            *link = cache->next;
            return;
        }
    }
}

void reset_knn_cache(KnnCache* cache)
{
    note_taken(cache);
    if (cache->used > 0) {
        if (many_are_short(*cache)) {
            cache->next_wanted = Max(cache->next_wanted, Min(cache->wanted * 2, most_wanted));
        } else if (cache->most_taken < cache->wanted / 4) {
            cache->next_wanted = Max(cache->wanted / 2, cache->least_wanted);
        }
    }
    cache->used = 0;
    cache->short_rows = 0;
    cache->most_taken = 0;
    cache->count = 0;
    cache->answers = nullptr;
    cache->current = no_query;
    cache->near_query = no_query;
}

void fill_knn_caches(KnnCache* caches, uint32 count)
{
    if (count == 0 || caches[0].count == 0) return;
    keep_next_batches();
    for (uint32 i = 0; i < count; ++i) caches[i].wanted = caches[i].next_wanted;
    if (count > 1) search_together(caches, count);
    for (uint32 i = 0; i < count; ++i) {
        KnnCache& cache = caches[i];
        if (cache.answers != nullptr) continue;
        cache.answers =
            static_cast<BatchAnswer*>(MemoryContextAllocZero(cache.context, sizeof(BatchAnswer) * cache.count));
        search_queries(&cache, 0, cache.count, cache.wanted);
    }
}

void begin_next_batch(KnnCache* cache, const float* vectors, uint32 count, BatchAhead* ahead, MemoryContext context)
{
    keep_next_batches();
    cache->ahead = ahead;
    cache->ahead_context = context;
    MemoryContext outer = MemoryContextSwitchTo(context);
    begin_batch(make_queries(cache, vectors, count, cache->next_wanted), ahead);
    MemoryContextSwitchTo(outer);
}

void keep_next_batches()
{
    for (KnnCache* cache = caches; cache != nullptr; cache = cache->next) {
        if (cache->ahead == nullptr) continue;
        MemoryContext outer = MemoryContextSwitchTo(cache->ahead_context);
        finish_batch(cache->ahead);
        MemoryContextSwitchTo(outer);
    }
}

bool take_next_batch(KnnCache* cache)
{
    keep_next_batches();
    const BatchAhead* ahead = cache->ahead;
    cache->ahead = nullptr;
    if (ahead->answers == nullptr) {
        fill_knn_caches(cache, 1);
        return false;
    }
    cache->answers = ahead->answers;
    cache->wanted = ahead->queries.wanted;
    count_answers(cache, cache->answers, cache->count);
    return true;
}

KnnCache* find_knn_cache(const EState* executor, Relation index)
{
    for (KnnCache* cache = caches; cache != nullptr; cache = cache->next) {
        if (cache->executor != executor || cache->current == no_query) continue;
        if (RelationGetRelid(cache->index) == RelationGetRelid(index)) return cache;
    }
    return nullptr;
}

const BatchAnswer* find_knn_answer(KnnCache* cache, Relation heap, const float* query, uint32 dimensions)
{
    const float* theirs = cache->queries + uint64{cache->current} * dimensions;
    if (cache->dimensions != dimensions || memcmp(theirs, query, sizeof(float) * dimensions) != 0) return nullptr;
    note_taken(cache);
    cache->used++;
    cache->counts.hits++;
    bring_near(cache, heap);
    return &cache->answers[cache->current];
}

const BatchAnswer* deepen_knn_answer(KnnCache* cache, uint32 wanted)
{
    cache->short_rows++;
    cache->counts.deepened++;
    const uint32 first = cache->current;
    if (many_are_short(*cache) && wanted <= most_wanted) {
        search_queries(cache, first, cache->count - first, wanted);
        cache->wanted = wanted;
        cache->next_wanted = Max(cache->next_wanted, wanted);
        cache->short_rows = 0;
        cache->used = 1;
    } else {
        search_queries(cache, first, 1, wanted);
    }
    return &cache->answers[first];
}

}  // namespace pgwarp
