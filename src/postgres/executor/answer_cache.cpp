#include "postgres/executor/answer_cache.h"

#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/client/index_searches.h"
#include "postgres/executor/knn_batch_keys.h"
#include "postgres/scan/search_start.h"

extern "C" {
#include "nodes/memnodes.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 usual_text_words = 64;  // of a query
constexpr uint32 most_wanted = 1024;     // rows searched for ahead; a scan that needs more searches by itself
// If more than one in this many used answers was too short, the later answers of the batch are deepened together.
constexpr uint32 few_short_rows = 8;
constexpr double filters_most = 2;    // rows taken per row of the LIMIT, from which on filters run ahead
constexpr double depth_margin = 1.3;  // over the usual depth: then most scans take filtered rows only

// The caches of one query. They are found through a callback of the query's memory context, and are freed with it.
struct QueryCaches {
    MemoryContextCallback anchor;
    AnswerCache* first;
};

void forget_query(void* argument)
{
    for (AnswerCache* cache = static_cast<QueryCaches*>(argument)->first; cache != nullptr; cache = cache->next) {
        drop_next_batch(cache);
    }
}

QueryCaches* find_query_caches(const EState* executor)
{
    for (MemoryContextCallback* callback = executor->es_query_cxt->reset_cbs; callback != nullptr;
         callback = callback->next) {
        if (callback->func == forget_query) return static_cast<QueryCaches*>(callback->arg);
    }
    return nullptr;
}

QueryCaches* make_query_caches(const EState* executor)
{
    auto* made = static_cast<QueryCaches*>(MemoryContextAllocZero(executor->es_query_cxt, sizeof(QueryCaches)));
    made->anchor.func = forget_query;
    made->anchor.arg = made;
    MemoryContextRegisterResetCallback(executor->es_query_cxt, &made->anchor);
    return made;
}

AnswerCache* first_cache(const EState* executor)
{
    const QueryCaches* found = find_query_caches(executor);
    return found != nullptr ? found->first : nullptr;
}

SearchSettings current_settings(const AnswerCache* cache)
{
    const char* parameter = nullptr;
    return {recall_asked(cache->index), image_of_settings(*cache->method), alias_effort(cache->index, &parameter)};
}

bool are_current(const AnswerCache* cache, const SearchSettings& settings)
{
    const SearchSettings now = current_settings(cache);
    return now.recall == settings.recall && now.method == settings.method && now.alias_effort == settings.alias_effort;
}

bool many_are_short(const AnswerCache& cache)
{
    return uint64{cache.short_rows} * few_short_rows > cache.used;
}

// Count the requests that gave these answers.
void count_answers(AnswerCache* cache, const BatchAnswer* found, uint32 count)
{
    const BatchPart* last = nullptr;
    for (uint32 i = 0; i < count; ++i) {
        if (found[i].part == nullptr || found[i].part == last) continue;
        last = found[i].part;
        cache->counts.requests++;
        cache->counts.engine_ns += last->reply.engine_ns;
        cache->counts.on_cuda = last->reply.on_cuda != 0;
        note_keyed_search(&cache->counts.keyed, last->reply);
        cache->counts.settings = last->reply.resolved;
    }
    cache->counts.queries += count;
}

SearchStyle style_of(const AnswerCache& cache, double within)
{
    return {cache.is_filtered ? prepare_normal_search : prepare_rungs, true, within};
}

BatchQueries make_queries(const AnswerCache* cache, const RowView& queries, const QueryPredicate* predicates,
                          double within, uint32 wanted)
{
    return {cache->index, style_of(*cache, within), wanted, queries, predicates};
}

// Search for queries [first, first + count) of the batch.
void search_queries(AnswerCache* cache, uint32 first, uint32 count, uint32 wanted)
{
    keep_begun_batch();
    MemoryContext outer = MemoryContextSwitchTo(cache->context);
    const QueryPredicate* predicates = cache->predicates != nullptr ? cache->predicates + first : nullptr;
    const BatchAnswer* found =
        search_batch(make_queries(cache, cache->queries.slice(first, count), predicates, cache->within, wanted));
    memcpy(cache->answers + first, found, sizeof(BatchAnswer) * count);
    count_answers(cache, found, count);
    MemoryContextSwitchTo(outer);
}

// Search for the batch in all indexes with one request. A cache whose index got no answers stays without them, and so
// do all where the predicates are too many for a request.
void search_together(AnswerCache* caches, uint32 count)
{
    AnswerCache& first = caches[0];
    MemoryContext outer = MemoryContextSwitchTo(first.context);
    auto* searches = static_cast<IndexSearch*>(palloc0(sizeof(IndexSearch) * count));
    for (uint32 i = 0; i < count; ++i) searches[i] = {caches[i].index, caches[i].wanted, nullptr};
    IndexSearchCounts counts = {};
    SearchPredicates predicates = {};
    if (first.predicates == nullptr || gather_predicates(first.predicates, first.count, &predicates) == first.count) {
        search_indexes(style_of(first, first.within), searches, count, first.metric, first.queries, predicates,
                       &counts);
    }
    for (uint32 i = 0; i < count; ++i) {
        const BatchAnswer* answers = searches[i].answers;
        caches[i].answers = searches[i].answers;
        if (answers != nullptr && answers->part != nullptr) {
            note_keyed_search(&first.counts.keyed, answers->part->reply);
        }
    }
    first.counts.requests += counts.requests;
    first.counts.queries += counts.searches;
    first.counts.engine_ns += counts.engine_ns;
    first.counts.on_cuda = first.counts.on_cuda || counts.on_cuda;
    if (counts.requests > 0) first.counts.settings = counts.settings;
    MemoryContextSwitchTo(outer);
}

// Rows that the filter left out between taken rows count as taken.
void count_left_out(AnswerCache* cache)
{
    const BatchAnswer* answer = cache->taking;
    cache->taking = nullptr;
    if (answer == nullptr || answer->ranks == nullptr || cache->taken == 0) return;
    const bool all = cache->taken > answer->count;
    cache->taken = all ? cache->taken + answer->dropped : answer->ranks[cache->taken - 1] + 1;
}

void note_taken(AnswerCache* cache)
{
    count_left_out(cache);
    cache->most_taken = Max(cache->most_taken, cache->taken);
    cache->sum_taken += cache->taken;
    cache->taken = 0;
}

// Begin to prefetch the pages that one query's scan will read.
void bring_pages_near(AnswerCache* cache, Relation heap, bool filtered, uint32 query)
{
    const BatchAnswer& answer = filtered ? cache->filtered[query] : cache->answers[query];
    uint32 expected = cache->most_taken > 0 ? cache->most_taken : cache->least_wanted;
    if (filtered) expected = cache->usually_kept;
    prefetch_pages(heap, answer.results, Min(answer.count, expected), &cache->near);
    cache->near_query = query;
}

// Whether the scans of a batch prefetch from the heap: found out once a batch.
bool prefetches_from(AnswerCache* cache, Relation heap)
{
    if (heap != cache->near_heap) {
        cache->near_heap = heap;
        cache->prefetches = heap != nullptr && may_prefetch(heap);
    }
    return cache->prefetches;
}

// Prefetch the rows of the current query before they are fetched, and the pages of the next query.
void bring_near(AnswerCache* cache, Relation heap, bool filtered)
{
    if (!prefetches_from(cache, heap)) return;
    if (cache->near_query != cache->current) bring_pages_near(cache, heap, filtered, cache->current);
    prefetch_rows(cache->near);
    if (cache->current + 1 < cache->count) bring_pages_near(cache, heap, filtered, cache->current + 1);
}

// Evaluate the scan's filter for queries [first, first + count) of the batch.
void filter_queries(AnswerCache* cache, const AnsweredScan& scan, uint32 first, uint32 count, uint64* kept)
{
    MemoryContext outer = MemoryContextSwitchTo(cache->context);
    filter_answers(cache->filter, scan, cache->answers + first, count, cache->filter_depth, cache->filtered + first,
                   kept);
    MemoryContextSwitchTo(outer);
}

// Filter the batch before its first row is fetched, if earlier batches showed that most rows do not pass.
void filter_batch(AnswerCache* cache, const AnsweredScan& scan)
{
    if (cache->filtered != nullptr || cache->never_filtered || scan.heap == nullptr) return;
    if (cache->usually_taken < filters_most * static_cast<double>(Max(int64{1}, scan.limit))) return;
    if (cache->filter == nullptr) cache->filter = make_answer_filter(scan);
    if (cache->filter == nullptr || is_useless(cache->filter)) {
        cache->never_filtered = true;
        return;
    }
    if (!filters_for(cache->filter, scan)) return;
    cache->filtered =
        static_cast<BatchAnswer*>(MemoryContextAllocHuge(cache->context, sizeof(BatchAnswer) * cache->count));
    cache->filter_depth = static_cast<uint32>(Min(cache->usually_taken * depth_margin, double{most_wanted})) + 1;
    uint64 kept = 0;
    filter_queries(cache, scan, cache->current, cache->count - cache->current, &kept);
    cache->usually_kept = static_cast<uint32>(kept / (cache->count - cache->current)) + 1;
}

const BatchAnswer* take_answer(AnswerCache* cache, const AnsweredScan& scan)
{
    const bool filtered = cache->filtered != nullptr && filters_for(cache->filter, scan);
    cache->taking = filtered ? &cache->filtered[cache->current] : &cache->answers[cache->current];
    return cache->taking;
}

}  // namespace

void register_answer_cache(AnswerCache* cache)
{
    QueryCaches* of_query = find_query_caches(cache->executor);
    if (of_query == nullptr) of_query = make_query_caches(cache->executor);
    cache->next = of_query->first;
    of_query->first = cache;
}

void unregister_answer_cache(AnswerCache* cache)
{
    QueryCaches* of_query = find_query_caches(cache->executor);
    if (of_query == nullptr) return;
    drop_next_batch(cache);
    for (AnswerCache** link = &of_query->first; *link != nullptr; link = &(*link)->next) {
        if (*link == cache) {
            *link = cache->next;
            return;
        }
    }
}

void reset_answer_cache(AnswerCache* cache)
{
    note_taken(cache);
    if (cache->used > 0) {
        cache->usually_taken = static_cast<double>(cache->sum_taken) / cache->used;
        if (many_are_short(*cache)) {
            cache->next_wanted = Max(cache->next_wanted, Min(cache->wanted * 2, most_wanted));
        } else if (cache->most_taken < cache->wanted / 4) {
            cache->next_wanted = Max(cache->wanted / 2, cache->least_wanted);
        }
    }
    cache->used = 0;
    cache->short_rows = 0;
    cache->most_taken = 0;
    cache->sum_taken = 0;
    cache->count = 0;
    cache->answers = nullptr;
    cache->filtered = nullptr;
    cache->current = no_query;
    cache->near_query = no_query;
    cache->near_heap = nullptr;
    cache->prefetches = false;
}

void fill_answer_caches(AnswerCache* caches, uint32 count)
{
    if (count == 0 || caches[0].count == 0) return;
    keep_begun_batch();
    for (uint32 i = 0; i < count; ++i) {
        caches[i].wanted = caches[i].next_wanted;
        caches[i].settings = current_settings(&caches[i]);
    }
    if (count > 1) search_together(caches, count);
    for (uint32 i = 0; i < count; ++i) {
        AnswerCache& cache = caches[i];
        if (cache.answers != nullptr) continue;
        cache.answers =
            static_cast<BatchAnswer*>(MemoryContextAllocZero(cache.context, sizeof(BatchAnswer) * cache.count));
        search_queries(&cache, 0, cache.count, cache.wanted);
    }
}

void begin_next_batch(AnswerCache* cache, const RowView& queries, const QueryPredicate* predicates, double within,
                      BatchAhead* ahead, MemoryContext context)
{
    cache->ahead = ahead;
    cache->ahead_settings = current_settings(cache);
    MemoryContext outer = MemoryContextSwitchTo(context);
    begin_batch(make_queries(cache, queries, predicates, within, cache->next_wanted), ahead);
    MemoryContextSwitchTo(outer);
}

uint32 most_queries_ahead(const AnswerCache& cache)
{
    const IndexState state = read_index_state(cache.index);
    SearchRequest request = {};
    if (!index_is_empty(state)) {
        (cache.is_filtered ? plan_normal_search : plan_rungs)(cache.index, state, cache.next_wanted, &request);
        ask_for_places(cache.index, &request);
    }
    // Queries of text are taken for short ones; longer ones are searched for in more requests.
    return queries_per_request(cache.dimensions > 0 ? cache.dimensions : usual_text_words, request);
}

void drop_next_batch(AnswerCache* cache)
{
    drop_begun_batch(cache->ahead);
    cache->ahead = nullptr;
}

bool take_next_batch(AnswerCache* cache)
{
    keep_begun_batch();
    const BatchAhead* ahead = cache->ahead;
    cache->ahead = nullptr;
    if (ahead->answers == nullptr || !are_current(cache, cache->ahead_settings)) {
        fill_answer_caches(cache, 1);
        return false;
    }
    cache->answers = ahead->answers;
    cache->settings = cache->ahead_settings;
    cache->wanted = ahead->queries.wanted;
    count_answers(cache, cache->answers, cache->count);
    return true;
}

AnswerCache* find_answer_cache(const EState* executor, Relation index)
{
    for (AnswerCache* cache = first_cache(executor); cache != nullptr; cache = cache->next) {
        if (cache->current == no_query) continue;
        if (RelationGetRelid(cache->index) == RelationGetRelid(index)) return cache;
    }
    return nullptr;
}

void note_keys_of_scan(const EState* executor, Relation index, const ScanKeyData* keys, int count)
{
    for (AnswerCache* cache = first_cache(executor); cache != nullptr; cache = cache->next) {
        if (cache->noted_keys == nullptr || RelationGetRelid(cache->index) != RelationGetRelid(index)) continue;
        note_scan_keys(cache->noted_keys, keys, count);
    }
}

bool answers_query(const AnswerCache* cache, const ScanQuery& query)
{
    if (cache->current == no_query || cache->within < query.within) return false;
    const QueryPredicate none = {};
    const QueryPredicate& predicate = cache->predicates != nullptr ? cache->predicates[cache->current] : none;
    if (!(predicate == query.predicate)) return false;
    return same_rows(cache->queries.row(cache->current), query.row) && are_current(cache, cache->settings);
}

AnswerCache* find_answering_cache(const EState* executor, Relation index, const ScanQuery& query)
{
    for (AnswerCache* cache = first_cache(executor); cache != nullptr; cache = cache->next) {
        if (RelationGetRelid(cache->index) != RelationGetRelid(index)) continue;
        if (answers_query(cache, query)) return cache;
    }
    return nullptr;
}

const BatchAnswer* take_cached_answer(AnswerCache* cache, const AnsweredScan& scan)
{
    note_taken(cache);
    cache->used++;
    cache->counts.hits++;
    filter_batch(cache, scan);
    const BatchAnswer* answer = take_answer(cache, scan);
    bring_near(cache, scan.heap, answer->ranks != nullptr);
    return answer;
}

const BatchAnswer* deepen_cached_answer(AnswerCache* cache, const AnsweredScan& scan, uint32 wanted)
{
    count_left_out(cache);
    cache->short_rows++;
    cache->counts.deepened++;
    const uint32 first = cache->current;
    uint32 count = 1;
    if (many_are_short(*cache) && wanted <= most_wanted) {
        count = cache->count - first;
        search_queries(cache, first, count, wanted);
        cache->wanted = wanted;
        cache->next_wanted = Max(cache->next_wanted, wanted);
        cache->short_rows = 0;
        cache->used = 1;
        cache->sum_taken = 0;
    } else {
        search_queries(cache, first, count, wanted);
    }
    if (cache->filtered != nullptr && filters_for(cache->filter, scan)) {
        filter_queries(cache, scan, first, count, nullptr);
        return &cache->filtered[first];
    }
    return &cache->answers[first];
}

}  // namespace pgwarp
