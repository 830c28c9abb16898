// Index-only scans: rows returned from the index, by their included columns and their distance.
#include <limits>

#include "postgres/scan/scan_state.h"
#include "postgres/settings.h"
#include "postgres/storage/included_tuple.h"

extern "C" {
#include "access/visibilitymap.h"
#include "utils/datum.h"
}

namespace pgwarp
{

// Makes the tuples that the scan returns: (key columns ..., distance, included columns ...), see
// planner/index_only_path.h. A row of the index becomes an index tuple, without values of key columns. A row of the
// heap becomes a heap tuple, which has the values of columns to filter by, and no limit of length: the included columns
// of a row without a place may be too long for the index.
struct IncludedReturn {
    int keys;
    TupleDesc included;
    TupleDesc returned;
    char* stored;     // [max_included_bytes]
    IndexTuple made;  // [max_included_bytes + returned_front]
    Buffer visibility_map;
};

namespace
{

constexpr uint32 look_ahead = 16;                       // candidates whose pages are looked up together
constexpr uint32 returned_front = 3 * MAXIMUM_ALIGNOF;  // header, a key column, distance

TupleDesc returned_descriptor(Relation index, TupleDesc included)
{
    const int keys = IndexRelationGetNumberOfKeyAttributes(index);
    TupleDesc returned = CreateTemplateTupleDesc(keys + 1 + included->natts);
    const int vector = vector_column(index);
    for (int i = 0; i < keys; ++i) {
        const auto number = static_cast<AttrNumber>(i + 1);
        if (i == vector) {
            TupleDescInitEntry(returned, number, "key", FLOAT8OID, -1, 0);
        } else {
            TupleDescCopyEntry(returned, number, RelationGetDescr(index), number);
        }
    }
    TupleDescInitEntry(returned, static_cast<AttrNumber>(keys + 1), "distance", FLOAT8OID, -1, 0);
    for (int i = 1; i <= included->natts; ++i) {
        TupleDescCopyEntry(returned, static_cast<AttrNumber>(keys + 1 + i), included, static_cast<AttrNumber>(i));
    }
    return returned;
}

IncludedReturn* open_included_return(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    if (state->included != nullptr) return state->included;
    MemoryContext outer = MemoryContextSwitchTo(state->scan_context);
    auto* made = static_cast<IncludedReturn*>(palloc0(sizeof(IncludedReturn)));
    made->included = included_descriptor(scan->indexRelation);
    made->keys = IndexRelationGetNumberOfKeyAttributes(scan->indexRelation);
    made->returned = returned_descriptor(scan->indexRelation, made->included);
    made->stored = static_cast<char*>(palloc(max_included_bytes));
    made->made = static_cast<IndexTuple>(palloc(max_included_bytes + returned_front + MAXIMUM_ALIGNOF));
    made->visibility_map = InvalidBuffer;
    MemoryContextSwitchTo(outer);
    scan->xs_itupdesc = scan->xs_hitupdesc = made->returned;
    state->included = made;
    return made;
}

// Look up the pages of the candidates from `first` on in the visibility map, then check whether VACUUM has run on the
// index since the search. A row that VACUUM removed may lie on a page that is all-visible by now; VACUUM bumps the
// version before that.
void look_at_pages(IndexScanDesc scan, IncludedReturn* included, uint32 first)
{
    Progress& now = state_of(scan)->now;
    const uint32 end = Min(first + look_ahead, now.batch.count);
    for (uint32 i = first; i < end; ++i) {
        Candidate& candidate = now.batch.items[i];
        const uint8 status =
            visibilitymap_get_status(scan->heapRelation, candidate.tid.block, &included->visibility_map);
        candidate.all_visible = (status & VISIBILITYMAP_ALL_VISIBLE) != 0;
        candidate.looked = true;
    }
    const MetaPage meta = read_metapage(scan->indexRelation);
    const bool same =
        placed_generation(meta.generation) == now.batch_generation && meta.tombstone_version == now.tombstone_version;
    for (uint32 i = first; i < end && !same; ++i) now.batch.items[i].all_visible = false;
}

// Copy the candidate's tuple from the index to included->stored; false when it isn't there any more.
bool read_stored(IndexScanDesc scan, const Candidate& candidate, IncludedReturn* included)
{
    if (candidate.place == no_place) return false;
    const Progress& now = state_of(scan)->now;
    const uint64 source = candidate.place >> place_source_shift;
    const uint64 number = candidate.place & ((UINT64CONST(1) << place_source_shift) - 1);
    if (source > 0) {
        const MetaPage meta = read_metapage(scan->indexRelation);
        if (placed_generation(meta.generation) != now.batch_generation || source > delta_log_count) return false;
        return read_included_entry(scan->indexRelation, meta, static_cast<uint32>(source - 1), number, candidate.tid,
                                   included->stored);
    }
    return read_included_of(scan->indexRelation, now.batch_generation, number, candidate.tid, included->stored);
}

// Returns the distance of the candidate by the operator. Under cosine no row has one to a zero vector.
double returned_distance(const Progress& now, const Candidate& candidate)
{
    return now.arbitrary ? std::numeric_limits<double>::quiet_NaN() : candidate.value;
}

// Make the returned tuple from the candidate's heap row; null when the scan's snapshot sees no row.
HeapTuple make_from_heap(IndexScanDesc scan, const Candidate& candidate, const IncludedReturn* included)
{
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    if (!fetch_row_values(scan_heap(scan), candidate.tid, values, nulls)) return nullptr;
    Datum made[INDEX_MAX_KEYS + 1];
    bool made_nulls[INDEX_MAX_KEYS + 1];
    const int keys = included->keys;
    for (int i = 0; i < keys + included->included->natts; ++i) {
        made[i < keys ? i : i + 1] = values[i];
        made_nulls[i < keys ? i : i + 1] = nulls[i];
    }
    made_nulls[vector_column(scan->indexRelation)] = true;
    made[keys] = Float8GetDatum(returned_distance(state_of(scan)->now, candidate));
    made_nulls[keys] = state_of(scan)->now.null_distance;
    return heap_form_tuple(included->returned, made, made_nulls);
}

// Put the distance before the included columns. Key columns are NULL; an only one is 0, so that a tuple has no NULLs
// where the stored one has none.
void make_returned(IncludedReturn* included, double distance, bool distance_is_null)
{
    const auto* stored = reinterpret_cast<const IndexTupleData*>(included->stored);
    const Size stored_at = IndexInfoFindDataOffset(stored->t_info);
    const Size bytes = IndexTupleSize(stored) - stored_at;
    const bool stored_nulls = IndexTupleHasNulls(stored);
    const bool nulls = stored_nulls || distance_is_null || included->keys > 1;
    const Size data_at = IndexInfoFindDataOffset(nulls ? INDEX_NULL_MASK : 0);
    char* out = reinterpret_cast<char*>(included->made);
    memset(out, 0, data_at + sizeof(float8));
    Size at = data_at;
    if (nulls) {
        uint32 present = UINT32_MAX;
        if (stored_nulls) memcpy(&present, included->stored + sizeof(IndexTupleData), sizeof(present));
        present = (present << 1 | (distance_is_null ? 0 : 1)) << included->keys;
        memcpy(out + sizeof(IndexTupleData), &present, sizeof(present));
    } else {
        at += sizeof(float8);
    }
    if (!distance_is_null) {
        memcpy(out + at, &distance, sizeof(distance));
        at += sizeof(distance);
    }
    memcpy(out + at, included->stored + stored_at, bytes);
    included->made->t_info =
        static_cast<uint16>((at + bytes) | (nulls ? INDEX_NULL_MASK : 0) | (stored->t_info & INDEX_VAR_MASK));
}

// Raise an error unless the tuple equals that of the heap row.
void verify_included(IndexScanDesc scan, const Candidate& candidate, const IncludedReturn* included)
{
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    Datum ours[INDEX_MAX_KEYS];
    bool our_nulls[INDEX_MAX_KEYS];
    bool right = fetch_row_values(scan_heap(scan), candidate.tid, values, nulls);
    index_deform_tuple(reinterpret_cast<IndexTuple>(included->stored), included->included, ours, our_nulls);
    const int keys = IndexRelationGetNumberOfKeyAttributes(scan->indexRelation);
    for (int i = 0; right && i < included->included->natts; ++i) {
        const auto* attribute = TupleDescAttr(included->included, i);
        right = nulls[keys + i] == our_nulls[i] &&
                (our_nulls[i] || datum_image_eq(values[keys + i], ours[i], attribute->attbyval, attribute->attlen));
    }
    if (right) return;
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("index \"%s\" returned wrong included columns for row (%u,%u)",
                           RelationGetRelationName(scan->indexRelation), candidate.tid.block, candidate.tid.offset)));
}

}  // namespace

void look_ahead_from(IndexScanDesc scan, uint32 first)
{
    if (!state_of(scan)->now.batch.items[first].looked) look_at_pages(scan, open_included_return(scan), first);
}

bool return_included(IndexScanDesc scan, Candidate* candidate)
{
    ScanState* state = state_of(scan);
    IncludedReturn* included = open_included_return(scan);
    const CandidateList& batch = state->now.batch;
    const bool in_batch = candidate >= batch.items && candidate < batch.items + batch.count;
    if (in_batch) look_ahead_from(scan, static_cast<uint32>(candidate - batch.items));
    if (scan->xs_hitup != nullptr) pfree(scan->xs_hitup);
    scan->xs_hitup = nullptr;
    // Rows that the executor checks again need the values of their columns.
    if (candidate->all_visible && !state->now.filter.recheck && read_stored(scan, *candidate, included)) {
        if (setting_verify_results) verify_included(scan, *candidate, included);
        make_returned(included, returned_distance(state->now, *candidate), state->now.null_distance);
        scan->xs_itup = included->made;
        return true;
    }
    scan->xs_hitup = make_from_heap(scan, *candidate, included);
    return scan->xs_hitup != nullptr;
}

void end_included_return(ScanState* state)
{
    if (state->included != nullptr && BufferIsValid(state->included->visibility_map)) {
        ReleaseBuffer(state->included->visibility_map);
    }
}

}  // namespace pgwarp
