// The state of one index scan, and the functions of the files that share it.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/am/tid_set.h"
#include "postgres/client/index_state.h"
#include "postgres/scan/filter_keys.h"
#include "postgres/scan/heap_distance.h"
#include "postgres/scan/limit_hint.h"
#include "postgres/scan/operator_distance.h"
#include "postgres/scan/prefetched_answers.h"
#include "postgres/scan/search_reply.h"

extern "C" {
#include "access/relscan.h"
}

namespace pgwarp
{

// A row that is not emitted yet. Its distance lies in [value, upper]. The scan computes the exact distance only when
// bounds of rows overlap.
struct Candidate {
    Tid tid;
    double value;
    double upper;
    bool unsettled;    // its bounds overlap those of other rows, or may do
    bool looked;       // the visibility map was read for its page
    bool all_visible;  // its page was all-visible at a time when the index still had every row of the answer
    uint64 place;      // in the arrays or a log (place_source_shift), by the engine; no_place when unknown
};
inline constexpr uint64 no_place = UINT64_MAX;

// Rows in a growing array.
struct CandidateList {
    Candidate* items;
    uint32 count;
    uint32 capacity;
    uint32 next;   // the first not emitted yet
    uint32 ready;  // of a batch: end of the rows that may be emitted, the nearest ones
};

// The rows that a scan returns one after the other.
enum class RowStage : uint8 {
    leading_nulls,
    leading_nans,
    placed,
    trailing,  // rows without a place that did not lead
};

inline bool is_leading(RowStage stage)
{
    return stage < RowStage::placed;
}

// The state of one (re)scan. Its memory is in ScanState::context.
struct Progress {
    bool started;
    bool null_query;
    bool arbitrary;      // every order is right: NULL queries, zero vectors under cosine
    bool continuation;   // the next search goes on from `cursor`, past the method's own search
    bool exhausted;      // every placed row was offered
    bool unplaced;       // the last row offered is without a place (unplaced_rows.h)
    RowStage stage;      // set when the scan starts
    bool null_distance;  // of the last row offered
    bool first_done;     // `returned` holds the rows offered so far
    Metric metric;
    uint32 dimensions;
    FilterKeys filter;   // the scan's search keys
    RowView query;       // in the form of the SQL operator; without a row before the first tuple
    RowView sent;        // in the form that the engine takes
    uint32 wanted;       // rows that the next search is for
    JoinAnswers* ahead;  // answers of the join that searched for this scan, or null
    uint64 generation;
    uint64 batch_generation;   // generation of the placed rows that the batch was searched among
    uint64 tombstone_version;  // tombstone version with which the batch was searched
    SearchCursor cursor;
    double within;   // the largest distance of interest; infinity where the method takes no bound
    double floor;    // lower bound of later rows: the largest value made ready
    double ceiling;  // largest upper value emitted, and at least that of every held row
    CandidateList batch;
    double boundary;     // no row that wasn't offered yet has a smaller value
    CandidateList held;  // rows with exact distances, as a heap with the nearest first
    TidSet returned;
    // Of the last search:
    bool exact;         // it missed no row
    bool last_was_dry;  // it found fewer rows than it was for
    uint32 last_wanted;
    uint32 confirmed;  // rows of the batch within the search's depth
    bool enough;       // note_passing()
    uint32 searches;   // number of searches
    uint64 emitted;    // number of rows emitted
    uint64 offered;    // number of rows offered and described, counted for a filter
};

struct IncludedReturn;
struct UnplacedRows;

// The state behind IndexScanDesc::opaque.
struct ScanState {
    MemoryContext scan_context;  // of the whole scan
    MemoryContext context;       // reset by every rescan
    LimitHint hint;
    const MethodDescription* method;  // of the index
    KeyType key;
    int query_length;                  // of the index (query_value.h)
    HeapReader* heap;                  // opened when needed
    OperatorDistance* other_operator;  // null where the operator's distances are canonical
    IncludedReturn* included;          // null unless this is an index-only scan
    UnplacedRows* unplaced;            // null until the first one is asked for
    Progress now;
};

inline ScanState* state_of(IndexScanDesc scan)
{
    return static_cast<ScanState*>(scan->opaque);
}

// Whether the scan has its statement's snapshot. Prefetched answers are valid for such scans only.
bool scans_for_statement(IndexScanDesc scan);

// The heap addresses of the rows that can pass the filter above the scan; null: any row may.
const SearchTids* tids_of(IndexScanDesc scan);
// Whether searches of the scan are among a part of the index's rows: those that pass its keys, or have such addresses.
bool searches_part(IndexScanDesc scan);

// scan_fetch.cpp: fills now.batch with rows not offered yet; false when there are none.
bool fetch_batch(IndexScanDesc scan);

// filtered_scan.cpp: scans below a KnnFilter
// Whether the LIMIT reads so many rows that an exact search has to return them (search_plan.h): rows would be missing
// at their end, and unplaced rows come instead. Counted for each page by itself, so that pages of one size come from
// one sequence (protocol/rungs.h).
bool reads_to_end(IndexScanDesc scan, const IndexState& state);
// Chooses whether the scan's first search is exact, and its number of rows.
void choose_first_search(IndexScanDesc scan, const IndexState& state);
// Chooses the next search, after a search of whose rows too few passed the filter.
void choose_next_search(IndexScanDesc scan);
// Finds out whether the LIMIT above the KnnFilter needs no second search: `passing` rows of the first one, which filled
// the batch, are known to pass the filter.
void note_passing(IndexScanDesc scan, uint32 passing);
// Describes the row that the scan is about to return to its KnnFilter.
void describe_row(IndexScanDesc scan, const Candidate& candidate);

// scan_results.cpp
// The operator's distance of a heap row; false when the scan's snapshot doesn't see the row.
bool row_distance(IndexScanDesc scan, Tid tid, double* distance);
// Lets the rows of the next search be nearer than earlier ones: the KnnFilter above the scan sorts them. Rows that are
// held keep their order among the new ones.
void restart_order(IndexScanDesc scan);
// Turns the results of a search into the next batch, in order of value, without rows that were offered before. The
// batch keeps rows of approximate results that were not emitted yet.
void take_results(IndexScanDesc scan, const SearchResults& found);
// Chooses the rows of a batch of approximate results that may be emitted, once the next search is known. `by_codes`:
// the search was a continuation.
void choose_ready(IndexScanDesc scan, ResultKind kind, bool by_codes);
// Raises an error unless the candidate's heap row passes the predicate of the scan's keys, and has an address that the
// search was for.
void verify_passing(IndexScanDesc scan, Tid tid);
// Raises an error unless the candidate's distance is that of its heap row.
void verify_candidate(IndexScanDesc scan, const Candidate& candidate);
// The reader of the scan's table, opened with the first call.
HeapReader* scan_heap(IndexScanDesc scan);
// Appends to the list, whose memory is in `context`.
void push_candidate(CandidateList* list, const Candidate& candidate, MemoryContext context);
// Sorts by value, ties by heap address.
void sort_candidates(CandidateList* list);
// The next row in order of distance; null when the scan needs another batch, or at the end. When bounds overlap, heap
// rows decide the order. The executor could do that (xs_recheckorderby), but many releases of PostgreSQL, 17.11 and
// 18.6 among them, lose the ctid of a row that waits in its queue: ExecForceStoreHeapTuple() leaves tts_tid invalid,
// and FOR UPDATE then locks nothing and extends the table.
Candidate* next_in_order(IndexScanDesc scan);

// scan_included.cpp: index-only scans
// Finds out whether the index may answer for a row of the batch without the heap, and for some rows after it.
void look_ahead_from(IndexScanDesc scan, uint32 first);
// Fills xs_itup or xs_hitup with the row's included columns and distance. False when the scan's snapshot doesn't see
// the row.
bool return_included(IndexScanDesc scan, Candidate* candidate);
void end_included_return(ScanState* state);

}  // namespace pgwarp
