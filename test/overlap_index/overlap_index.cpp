// The front of the method overlap and its variant, for test/tap/list_rows.pl: indexes of int4[] columns, whose rows are
// inserted, merged and vacuumed as those of other indexes. It answers no queries; a function lists the rows that an
// index holds. Builds with fault points have it. The script of that test creates the access method and its operator
// classes.
//
// Arrays are in ascending order. One that begins with a negative number has no place. A word's weight is an eighth of
// it. The attributes of a row are its heap address and the length of its array.
#include "overlap_method/description.h"
#include "postgres/am/element_type.h"
#include "postgres/am/methods.h"
#include "postgres/am/vacuum.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/storage/build_pages.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/included_tuple.h"
#include "postgres/storage/stored_value.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/pg_type_d.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"
}

namespace pgwarp::test
{

namespace
{

constexpr uint32 attribute_count = 2;

template <const MethodDescription& description>
bytea* parse_options(Datum options, bool validate)
{
    return parse_method_options(description, options, validate);
}

template <const MethodDescription& description>
void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                   Selectivity* selectivity, double* correlation, double* pages)
{
    estimate_search_cost(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
}

[[maybe_unused]] const bool added = [] {
    add_access_method(overlap_description, {parse_options<overlap_description>, estimate_cost<overlap_description>});
    add_access_method(encoded_overlap_description,
                      {parse_options<encoded_overlap_description>, estimate_cost<encoded_overlap_description>});
    return true;
}();

IndexShape shape_of(Relation index)
{
    IndexShape shape = {};
    shape.method = access_method_of(index).method;
    FmgrInfo* element = index_getprocinfo(index, 1, element_support);
    shape.element = static_cast<ElementType>(DatumGetInt32(FunctionCall1(element, Datum{0})));
    shape.attribute_count = attribute_count;
    return shape;
}

// Append a row to the logs of the index.
void append_row(Relation index, const MetaPage& meta, ItemPointer tid, Datum* values, bool* is_null)
{
    uint64 attributes[attribute_count] = {
        ItemPointerGetBlockNumber(tid) * uint64{65536} + ItemPointerGetOffsetNumber(tid), 0};
    Datum* elements = nullptr;
    int length = 0;
    if (!is_null[0]) {
        deconstruct_array(reinterpret_cast<::ArrayType*>(PG_DETOAST_DATUM(values[0])), INT4OID, sizeof(int32), true,
                          TYPALIGN_INT, &elements, nullptr, &length);
        attributes[1] = static_cast<uint64>(length);
    }
    if (is_null[0] || (length > 0 && DatumGetInt32(elements[0]) < 0)) {
        append_unplaced(index, meta, tid, is_null[0], attributes);
        return;
    }
    char* value = static_cast<char*>(palloc(most_stored_bytes(meta.shape) + max_included_bytes));
    auto* words = reinterpret_cast<uint32*>(value);
    for (int i = 0; i < length; ++i) words[i] = static_cast<uint32>(DatumGetInt32(elements[i]));
    uint32 bytes = static_cast<uint32>(length) * sizeof(uint32);
    if (meta.shape.element == ElementType::weighted_list) {
        for (int i = 0; i < length; ++i) reinterpret_cast<float*>(value + bytes)[i] = static_cast<float>(words[i]) / 8;
        bytes *= 2;
    }
    const uint32 row_bytes = bytes;
    memcpy(value + bytes, attributes, sizeof(attributes));
    bytes += sizeof(attributes);
    if (has_included_columns(index)) {
        IndexTuple included = form_included(included_descriptor(index), tid, values, is_null);
        memcpy(value + bytes, included, IndexTupleSize(included));
        bytes += static_cast<uint32>(IndexTupleSize(included));
    }
    append_delta(index, meta, tid, {value, bytes, row_bytes});
    pfree(value);
}

bool insert_row(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation, IndexUniqueCheck, bool,
                IndexInfo*)
{
    append_row(index, read_metapage(index), tid, values, is_null);
    return false;
}

void build_row(Relation index, ItemPointer tid, Datum* values, bool* is_null, bool, void*)
{
    append_row(index, read_metapage(index), tid, values, is_null);
}

// An empty index, whose rows come by its logs.
IndexBuildResult* build_index(Relation heap, Relation index, IndexInfo* info)
{
    UnplacedSort* no_rows = begin_unplaced_sort(work_mem, attribute_count, nullptr);
    finish_index(begin_index(index, MAIN_FORKNUM, shape_of(index)), 0, {}, {}, no_rows);
    end_unplaced_sort(no_rows);
    auto* result = static_cast<IndexBuildResult*>(palloc0(sizeof(IndexBuildResult)));
    result->heap_tuples = table_index_build_scan(heap, index, info, true, false, build_row, nullptr, nullptr);
    return result;
}

// The rows of an index, as a query's result.
struct RowList {
    ReturnSetInfo* result;
    bool weighted;
};

void put_row(RowList* list, const char* place, Tid tid, const RowView& row)
{
    ItemPointerData address;
    ItemPointerSet(&address, tid.block, tid.offset);
    Datum values[5] = {PointerGetDatum(cstring_to_text(place)), PointerGetDatum(&address)};
    bool nulls[5] = {false, false, row.offsets == nullptr, !list->weighted || row.offsets == nullptr, false};
    const Size count = row.word_count();
    auto* elements = static_cast<Datum*>(palloc(sizeof(Datum) * (Max(count, Size{attribute_count}))));
    const auto make_array = [elements](Size length, Oid type, int bytes, char alignment) {
        return PointerGetDatum(construct_array(elements, static_cast<int>(length), type, bytes, true, alignment));
    };
    for (Size i = 0; i < count; ++i) elements[i] = Int32GetDatum(static_cast<int32>(row.list(0)[i]));
    if (!nulls[2]) values[2] = make_array(count, INT4OID, sizeof(int32), TYPALIGN_INT);
    for (Size i = 0; i < count && list->weighted; ++i) elements[i] = Float4GetDatum(row.list_weights(0)[i]);
    if (!nulls[3]) values[3] = make_array(count, FLOAT4OID, sizeof(float4), TYPALIGN_INT);
    for (Size i = 0; i < attribute_count; ++i) elements[i] = Int64GetDatum(static_cast<int64>(row.attributes[i]));
    values[4] = make_array(attribute_count, INT8OID, sizeof(int64), TYPALIGN_DOUBLE);
    tuplestore_putvalues(list->result->setResult, list->result->setDesc, values, nulls);
}

void put_unplaced(void* state, const UnplacedRow& unplaced)
{
    RowView row;
    row.attributes = unplaced.attributes;
    put_row(static_cast<RowList*>(state), unplaced.kind == UnplacedKind::null ? "null" : "not a number", unplaced.tid,
            row);
}

// The bytes of an array.
template <class Element>
const Element* read_whole(Relation index, const Directory& directory, const char* name)
{
    const StoredArray* array = find_array(directory, name);
    if (array == nullptr) return nullptr;
    void* bytes = palloc(array->shape.bytes());
    if (read_array(index, directory, *array, 0, array->shape.bytes(), bytes) != ReadResult::done)
        elog(ERROR, "recycled");
    return static_cast<const Element*>(bytes);
}

void put_stored_rows(RowList* list, Relation index, const Directory& directory)
{
    const auto* blocks = read_whole<uint32>(index, directory, array_tid_block);
    const auto* offsets = read_whole<uint16>(index, directory, array_tid_offset);
    const uint64* dead = read_row_tombstones(index, directory);
    RowView rows;
    rows.count = directory.rows;
    rows.attribute_count = attribute_count;
    rows.attributes = read_whole<uint64>(index, directory, array_attributes);
    rows.offsets = read_whole<uint64>(index, directory, array_list_offsets);
    rows.words = read_whole<uint32>(index, directory, array_list_words);
    rows.weights = read_whole<float>(index, directory, array_list_weights);
    for (uint64 i = 0; i < directory.rows; ++i) {
        if (((dead[i / 64] >> (i % 64)) & 1) == 0) put_row(list, "array", {blocks[i], offsets[i], 0}, rows.row(i));
    }
}

void put_delta_rows(RowList* list, Relation index, const MetaPage& meta)
{
    for (uint32 log = 0; log < delta_log_count; ++log) {
        DeltaReader* reader = begin_delta_read(index, meta, log, meta.logs[log].start, PG_UINT64_MAX);
        DeltaEntry entry;
        RowView row;
        while (next_delta_row(reader, &entry, &row)) {
            if ((entry.flags & delta_dead) == 0) put_row(list, "log", {entry.block, entry.offset, 0}, row);
        }
        end_delta_read(reader);
    }
}

IndexAmRoutine* make_test_routine(Method method)
{
    IndexAmRoutine* routine = make_routine(method);
    routine->ambuild = build_index;
    routine->aminsert = insert_row;
    return routine;
}

}  // namespace

}  // namespace pgwarp::test

PGWARP_FUNCTION(pgwarp_test_overlap_handler)
{
    PGWARP_RETURN_ROUTINE(pgwarp::test::make_test_routine(pgwarp::test::overlap_method));
}

PGWARP_FUNCTION(pgwarp_test_encoded_overlap_handler)
{
    PGWARP_RETURN_ROUTINE(pgwarp::test::make_test_routine(pgwarp::test::encoded_overlap_method));
}

PGWARP_FUNCTION(pgwarp_test_element_list)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::list));
}

PGWARP_FUNCTION(pgwarp_test_element_weighted_list)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::weighted_list));
}

// pgwarp_test_rows(regclass): SETOF (place text, tid, words int4[], weights float4[], attributes int8[]).
PGWARP_FUNCTION(pgwarp_test_rows)
{
    using namespace pgwarp;
    InitMaterializedSRF(fcinfo, 0);
    Relation index = index_open(PG_GETARG_OID(0), AccessShareLock);
    const MetaPage meta = read_metapage(index);
    const Directory* directory = read_directory(index, meta);
    test::RowList list = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo),
                          meta.shape.element == ElementType::weighted_list};
    test::put_stored_rows(&list, index, *directory);
    test::put_delta_rows(&list, index, meta);
    visit_unplaced(index, meta, *directory, PG_UINT64_MAX, test::put_unplaced, &list);
    index_close(index, AccessShareLock);
    return 0;
}
