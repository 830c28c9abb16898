// Reads and sorts the unplaced rows of an index.
#include "postgres/scan/unplaced_rows.h"

#include <cmath>
#include <limits>

#include "postgres/scan/scan_state.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/unplaced.h"

namespace pgwarp
{

// All rows are read at once, since a merge may recycle the pages between two rows.
struct UnplacedRows {
    UnplacedSort* sort;  // null: there are none
    UnplacedKind kind;   // of the row returned last
    Candidate candidate;
};

namespace
{

// The kinds of rows that a stage offers.
struct StageKinds {
    bool nulls;
    bool nans;
};

StageKinds kinds_of(const ScanState* state)
{
    const Leading& leading = state->hint.leading;
    switch (state->now.stage) {
        case RowStage::leading_nulls:
            return {leading.nulls, false};
        case RowStage::leading_nans:
            return {false, leading.nans};
        default:
            return {!leading.nulls, !leading.nans};
    }
}

struct UnplacedTaker {
    UnplacedSort* sort;
    StageKinds kinds;
    const FilterKeys* filter;
    const SearchTids* tids;  // of the rows that are wanted; null: all
};

void take_row(void* state, const UnplacedRow& row)
{
    const auto* taker = static_cast<const UnplacedTaker*>(state);
    const bool is_null = row.kind == UnplacedKind::null;
    if (is_null ? !taker->kinds.nulls : !taker->kinds.nans) return;
    if (is_null ? taker->filter->placed_vectors : taker->filter->null_vectors) return;
    if (taker->tids != nullptr && !has_tid(*taker->tids, row.tid)) return;
    if (passes_keys(*taker->filter, row.attributes)) add_unplaced(taker->sort, row);
}

bool has_unplaced(Relation index, const IndexState& state)
{
    if (!keeps_unplaced(state.meta)) return false;
    return state.unplaced_rows > 0 || read_unplaced_end(index, state.meta) > state.meta.logs[unplaced_log].start;
}

UnplacedSort* read_unplaced(Relation index, StageKinds kinds, const FilterKeys& filter, const SearchTids* tids)
{
    if (!kinds.nulls && !kinds.nans) return nullptr;
    if (!has_unplaced(index, read_index_state(index))) return nullptr;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        UnplacedSort* sort = begin_unplaced_sort(work_mem, 0, nullptr);
        UnplacedTaker taker = {sort, kinds, &filter, tids};
        const DirectoryState state = read_directory_state(index);
        if (visit_unplaced(index, state.meta, *state.directory, PG_UINT64_MAX, take_row, &taker) == ReadResult::done) {
            perform_unplaced_sort(sort);
            return sort;
        }
        end_unplaced_sort(sort);
    }
}

UnplacedRows* open_unplaced(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    MemoryContext outer = MemoryContextSwitchTo(state->context);
    state->unplaced = static_cast<UnplacedRows*>(palloc0(sizeof(UnplacedRows)));
    state->unplaced->sort = read_unplaced(scan->indexRelation, kinds_of(state), state->now.filter, tids_of(scan));
    MemoryContextSwitchTo(outer);
    return state->unplaced;
}

}  // namespace

Candidate* next_unplaced_candidate(IndexScanDesc scan)
{
    Progress& now = state_of(scan)->now;
    UnplacedRows* rows = state_of(scan)->unplaced;
    if (rows == nullptr) rows = open_unplaced(scan);
    UnplacedRow row;
    if (rows->sort == nullptr || !next_unplaced(rows->sort, &row)) return nullptr;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    rows->kind = row.kind;
    rows->candidate = {row.tid, nan, nan, false, false, false, no_place};
    now.unplaced = true;
    now.null_distance = now.null_query || row.kind == UnplacedKind::null;
    return &rows->candidate;
}

void verify_unplaced(IndexScanDesc scan)
{
    const Progress& now = state_of(scan)->now;
    const UnplacedRows& rows = *state_of(scan)->unplaced;
    const Tid tid = rows.candidate.tid;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    if (!fetch_row_values(scan_heap(scan), tid, values, nulls)) return;
    double truth = std::numeric_limits<double>::quiet_NaN();
    const bool is_null = nulls[vector_column(scan->indexRelation)];
    bool right = is_null == (rows.kind == UnplacedKind::null);
    if (right && !is_null && !now.arbitrary) {
        row_distance(scan, tid, &truth);
        right = std::isnan(truth);
    }
    if (right) return;
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("index \"%s\" returned row (%u,%u) as one without a distance, the row's own is %.17g",
                           RelationGetRelationName(scan->indexRelation), tid.block, tid.offset, truth)));
}

void end_leading_stage(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    Progress& now = state->now;
    forget_unplaced(state);
    now.unplaced = false;
    now.null_distance = now.null_query;
    now.stage = now.stage == RowStage::leading_nulls ? RowStage::leading_nans : RowStage::placed;
}

void forget_unplaced(ScanState* state)
{
    if (state->unplaced != nullptr && state->unplaced->sort != nullptr) end_unplaced_sort(state->unplaced->sort);
    state->unplaced = nullptr;
}

}  // namespace pgwarp
