// The state of one index scan, and the functions of the files that share it.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/am/tid_set.h"
#include "postgres/client/index_state.h"
#include "postgres/scan/heap_distance.h"
#include "postgres/scan/limit_hint.h"
#include "postgres/scan/prefetched_answers.h"
#include "postgres/scan/search_reply.h"

extern "C" {
#include "access/relscan.h"
}

namespace pgwarp
{

// A row on its way out: its distance lies in [value, upper]. It need not be known better unless other rows may come
// between.
struct Candidate {
    Tid tid;
    double value;
    double upper;
    bool unsettled;    // others may come between
    bool looked;       // at its page in the visibility map
    bool all_visible;  // its page was, at a time at which the index still had every row of the answer
    uint64 place;      // in the index, as the engine told it; no_place when unknown
};
inline constexpr uint64 no_place = UINT64_MAX;

struct CandidateList {
    Candidate* items;
    uint32 count;
    uint32 capacity;
    uint32 next;   // to be emitted
    uint32 ready;  // of a batch: end of those that may be emitted, the nearest
};

// The state of one (re)scan; its memory is in ScanState::context.
struct Progress {
    bool started;
    bool null_query;
    bool arbitrary;      // every order is right: NULL queries, zero vectors under cosine
    bool continuation;   // past the method's own search
    bool exhausted;      // every placed row was offered
    bool unplaced;       // and rows without a place are being offered (unplaced_rows.h)
    bool null_distance;  // of the row offered last
    bool first_done;     // `returned` holds the rows that were offered
    Metric metric;
    uint32 dimensions;
    float* query;        // as the operator sees it
    float* sent;         // as the engine wants it
    uint32 wanted;       // rows that the next search is for
    JoinAnswers* ahead;  // of the join that answered, or null
    uint64 generation;
    uint64 batch_generation;   // of the index when the rows of the batch were searched
    uint64 tombstone_version;  // that they were searched with
    SearchCursor cursor;
    double floor;    // largest value emitted
    double ceiling;  // largest upper value emitted
    CandidateList batch;
    double boundary;     // no row that wasn't offered yet has a smaller value
    CandidateList held;  // rows whose distance had to be looked at, as a heap with the nearest first
    TidSet returned;
    // Of the last search:
    bool exact;         // it missed no row
    bool last_was_dry;  // it found fewer rows than it was for
    uint32 last_wanted;
    uint32 confirmed;  // rows of the batch within the search's depth
    uint32 searches;   // so far
    uint64 emitted;    // rows so far
    uint64 offered;    // rows so far, counted for a filter
};

struct IncludedReturn;
struct UnplacedRows;

struct ScanState {
    MemoryContext scan_context;  // of the whole scan
    MemoryContext context;       // reset by every rescan
    LimitHint hint;
    ElementType element;       // of the query
    HeapReader* heap;          // opened when needed
    IncludedReturn* included;  // of an index-only scan
    UnplacedRows* unplaced;    // null until they are asked for
    Progress now;
};

// Whether the scan has its statement's snapshot; only then answers fetched ahead are for it.
bool scans_for_statement(IndexScanDesc scan);

// scan_fetch.cpp: fills now.batch with rows not offered yet; false when there are none.
bool fetch_batch(IndexScanDesc scan);

// filtered_scan.cpp: below a KnnFilter
// Chooses whether the scan's first search is exact, and its number of rows.
void choose_first_search(IndexScanDesc scan, const IndexState& state);
// Chooses the next search, after one of whose rows too few passed.
void choose_next_search(IndexScanDesc scan);
// Describes the row that the scan is about to return to its KnnFilter.
void describe_row(IndexScanDesc scan, const Candidate& candidate);

// scan_results.cpp
// Turns the results of a search into the next batch, in order of value, without rows that were offered before. Rows of
// approximate results that were not emitted yet stay in it.
void take_results(IndexScanDesc scan, const SearchResults& found);
// Chooses which rows of a batch of approximate results may be emitted, once the next search is known. `by_codes`: the
// search was a continuation.
void choose_ready(IndexScanDesc scan, ResultKind kind, bool by_codes);
// Raises an error unless the candidate's distance is that of its heap row.
void verify_candidate(IndexScanDesc scan, const Candidate& candidate);
HeapReader* scan_heap(IndexScanDesc scan);
void push_candidate(CandidateList* list, const Candidate& candidate, MemoryContext context);
void sort_candidates(CandidateList* list);
// The next row in order of distance; null where that takes another batch, or at the end. Where bounds overlap, heap
// rows decide. The executor could do that (xs_recheckorderby), but many releases of PostgreSQL, 17.11 and 18.6 among
// them, lose the ctid of a row that waits in its queue: ExecForceStoreHeapTuple() leaves tts_tid invalid, and FOR
// UPDATE then locks nothing and extends the table.
Candidate* next_in_order(IndexScanDesc scan);

// scan_included.cpp: index-only scans
// Learns of a row of the batch, and of some after it, whether the index may answer for it.
void look_ahead_from(IndexScanDesc scan, uint32 first);
// Fills xs_itup with the row's included columns and distance. False when the scan's snapshot doesn't see the row.
bool return_included(IndexScanDesc scan, Candidate* candidate);
void end_included_return(ScanState* state);

}  // namespace pgwarp
