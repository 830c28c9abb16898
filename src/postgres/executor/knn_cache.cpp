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

// Search for queries [first, first + count) of the batch.
void search_queries(KnnCache* cache, uint32 first, uint32 count, uint32 wanted)
{
    MemoryContext outer = MemoryContextSwitchTo(cache->context);
    const float* queries = cache->queries + uint64{first} * cache->dimensions;
    const BatchAnswer* found =
        search_batch(cache->index, plan_normal_search, wanted, queries, count, cache->dimensions);
    memcpy(cache->answers + first, found, sizeof(BatchAnswer) * count);
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
    search_indexes(plan_normal_search, searches, count, first.metric, first.queries, first.count, first.dimensions,
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
            cache->wanted = Min(cache->wanted * 2, most_wanted);
        } else if (cache->most_taken < cache->wanted / 4) {
            cache->wanted = Max(cache->wanted / 2, cache->least_wanted);
        }
    }
    cache->used = 0;
    cache->short_rows = 0;
    cache->most_taken = 0;
    cache->count = 0;
    cache->answers = nullptr;
    cache->current = no_query;
}

void fill_knn_caches(KnnCache* caches, uint32 count)
{
    if (count == 0 || caches[0].count == 0) return;
    if (count > 1) search_together(caches, count);
    for (uint32 i = 0; i < count; ++i) {
        KnnCache& cache = caches[i];
        if (cache.answers != nullptr) continue;
        cache.answers =
            static_cast<BatchAnswer*>(MemoryContextAllocZero(cache.context, sizeof(BatchAnswer) * cache.count));
        search_queries(&cache, 0, cache.count, cache.wanted);
    }
}

KnnCache* find_knn_answer(const EState* executor, Relation index, const float* query, uint32 dimensions,
                          const BatchAnswer** answer, uint32* wanted)
{
    for (KnnCache* cache = caches; cache != nullptr; cache = cache->next) {
        if (cache->executor != executor || cache->current == no_query) continue;
        if (RelationGetRelid(cache->index) != RelationGetRelid(index) || cache->dimensions != dimensions) continue;
        const float* theirs = cache->queries + uint64{cache->current} * dimensions;
        if (memcmp(theirs, query, sizeof(float) * dimensions) != 0) continue;
        note_taken(cache);
        cache->used++;
        cache->counts.hits++;
        *answer = &cache->answers[cache->current];
        *wanted = cache->wanted;
        return cache;
    }
    return nullptr;
}

const BatchAnswer* deepen_knn_answer(KnnCache* cache, uint32 wanted)
{
    cache->short_rows++;
    cache->counts.deepened++;
    const uint32 first = cache->current;
    if (many_are_short(*cache) && wanted <= most_wanted) {
        search_queries(cache, first, cache->count - first, wanted);
        cache->wanted = wanted;
        cache->short_rows = 0;
        cache->used = 1;
    } else {
        search_queries(cache, first, 1, wanted);
    }
    return &cache->answers[first];
}

}  // namespace pgwarp
