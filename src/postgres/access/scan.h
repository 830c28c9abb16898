// The state of one index scan.
#pragma once

#include "postgres/access/heap_distance.h"
#include "postgres/access/methods.h"
#include "postgres/access/tid_set.h"
#include "postgres/engine/loader.h"
#include "postgres/executor/knn_cache.h"
#include "postgres/executor/limit_hint.h"

extern "C" {
#include "access/relscan.h"
}

namespace pgwarp
{

// A row on its way out: its distance lies in [value, upper]. The executor need not know it better unless other rows may
// come between.
struct Candidate {
    Tid tid;
    double value;
    double upper;
    bool recheck;
};

struct CandidateList {
    Candidate* items;
    uint32 count;
    uint32 capacity;
    uint32 next;  // to be emitted
};

// What one (re)scan knows; its memory is in ScanState::context.
struct Progress {
    bool started;
    bool null_query;
    bool arbitrary;     // every order is right: NULL queries, zero vectors under cosine
    bool continuation;  // past the method's own search
    bool exhausted;     // every row was offered
    bool first_done;    // `returned` holds what was offered
    Metric metric;
    uint32 dimensions;
    float* query;     // as the operator sees it
    float* sent;      // as the engine wants it
    uint32 wanted;    // rows that the next search is for
    KnnCache* ahead;  // whose answers were fetched ahead, or null
    uint64 generation;
    SearchCursor cursor;
    double floor;    // largest value emitted
    double ceiling;  // largest upper value emitted
    CandidateList batch;
    CandidateList late;  // nearer than rows already emitted; kept to the end
    TidSet returned;
};

struct ScanState {
    MemoryContext scan_context;  // of the whole scan
    MemoryContext context;       // reset by every rescan
    LimitHint hint;
    HeapReader* heap;  // opened when needed
    Progress now;
};

// The answers of the k-NN join that the scan is part of: those to its current row. Null when there are none.
KnnCache* scan_knn_cache(IndexScanDesc scan);

// scan_fetch.cpp: fills now.batch with rows not offered yet; false when there are none.
bool fetch_batch(IndexScanDesc scan);
// Rows that the first search of a scan is for.
uint32 first_wanted(const LimitHint& hint);

// search_plan.cpp
// Describes a method's own search for `wanted` rows: how many results, with which effort and settings.
void plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
// What a result says of its row's distance. bound_width: of the reply.
Candidate make_bounded(const Result& result, ResultKind kind, double bound_width);

// search_reply.cpp
struct SearchResults {
    SearchReply header;
    uint32 count;
    const Result* results;
};
// The results of a reply to a search with one query, palloc'ed.
SearchResults read_search_reply(const EngineReply& reply);

// scan_results.cpp
// Turns the results of a search into the next batch, in order of value, without what was offered before.
void take_results(IndexScanDesc scan, const SearchResults& found);
// Raises an error unless what is about to be emitted agrees with the heap row.
void verify_candidate(IndexScanDesc scan, const Candidate& candidate);
HeapReader* scan_heap(IndexScanDesc scan);
void push_candidate(CandidateList* list, const Candidate& candidate, MemoryContext context);
void sort_candidates(CandidateList* list);

}  // namespace pgwarp
