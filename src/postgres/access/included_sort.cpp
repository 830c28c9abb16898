#include "postgres/access/included_sort.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "executor/tuptable.h"
#include "storage/buffile.h"
}

namespace pgwarp
{

struct IncludedSort {
    Tuplesortstate* sort;
    TupleDesc included;
    TupleTableSlot* slot;  // (heap address as a number, tuple as a bytea)
    IncludedTotals totals;
};

namespace
{

int64 address_number(ItemPointer tid)
{
    return static_cast<int64>(ItemPointerGetBlockNumber(tid)) << 16 | ItemPointerGetOffsetNumber(tid);
}

TupleDesc sorted_descriptor()
{
    TupleDesc descriptor = CreateTemplateTupleDesc(2);
    TupleDescInitEntry(descriptor, 1, "address", INT8OID, -1, 0);
    TupleDescInitEntry(descriptor, 2, "included", BYTEAOID, -1, 0);
    return descriptor;
}

void copy_shape_name(ArrayShape* shape, const char* name)
{
    memset(static_cast<void*>(shape), 0, sizeof(*shape));
    strlcpy(shape->name, name, sizeof(shape->name));
}

// The array of tuples: of equal lengths, or one after the other.
ArrayShape tuples_shape(const IncludedTotals& totals)
{
    ArrayShape shape;
    copy_shape_name(&shape, array_included);
    shape.type = ArrayType::u8;
    const bool equal_lengths = totals.shortest == totals.longest;
    shape.rows = equal_lengths ? totals.rows : totals.bytes;
    shape.width = equal_lengths ? totals.longest : 1;
    return shape;
}

// Write the tuples; and where each begins, to a file.
void write_tuples(IncludedSort* sort, IndexWriter* writer, BufFile* places)
{
    uint64 at = 0;
    while (tuplesort_gettupleslot(sort->sort, true, false, sort->slot, nullptr)) {
        bool is_null = false;
        bytea* tuple = DatumGetByteaPP(slot_getattr(sort->slot, 2, &is_null));
        const uint32 bytes = static_cast<uint32>(VARSIZE_ANY_EXHDR(tuple));
        write_index_array(writer, VARDATA_ANY(tuple), bytes);
        if (places != nullptr) BufFileWrite(places, &at, sizeof(at));
        at += bytes;
    }
    ExecClearTuple(sort->slot);
}

void write_places(BufFile* places, uint64 rows, IndexWriter* writer)
{
    ArrayShape shape;
    copy_shape_name(&shape, array_included_at);
    shape.type = ArrayType::u64;
    shape.rows = rows;
    shape.width = 1;
    add_index_array(writer, shape);
    if (BufFileSeek(places, 0, 0, SEEK_SET) != 0) elog(ERROR, "could not rewind a temporary file");
    uint64 piece[1024];
    for (uint64 done = 0; done < rows;) {
        const uint64 count = Min(rows - done, static_cast<uint64>(lengthof(piece)));
        const size_t bytes = sizeof(uint64) * count;
        if (BufFileRead(places, piece, bytes) != bytes) elog(ERROR, "a temporary file ended too early");
        write_index_array(writer, piece, bytes);
        done += count;
    }
}

}  // namespace

void add_totals(IncludedTotals* to, const IncludedTotals& totals)
{
    if (totals.rows == 0) return;
    to->shortest = to->rows == 0 ? totals.shortest : Min(to->shortest, totals.shortest);
    to->longest = Max(to->longest, totals.longest);
    to->rows += totals.rows;
    to->bytes += totals.bytes;
}

IncludedSort* begin_included_sort(Relation index, int work_mem_kb, SortCoordinate coordinate)
{
    auto* sort = static_cast<IncludedSort*>(palloc0(sizeof(IncludedSort)));
    sort->included = included_descriptor(index);
    TupleDesc descriptor = sorted_descriptor();
    sort->slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
    AttrNumber column = 1;
    Oid less = Int8LessOperator;
    Oid collation = InvalidOid;
    bool nulls_first = false;
    sort->sort = tuplesort_begin_heap(descriptor, 1, &column, &less, &collation, &nulls_first, work_mem_kb, coordinate,
                                      TUPLESORT_NONE);
    return sort;
}

void add_included(IncludedSort* sort, ItemPointer tid, const Datum* values, const bool* nulls)
{
    const IndexTupleData* tuple = form_included(sort->included, tid, values, nulls);
    const uint32 bytes = static_cast<uint32>(IndexTupleSize(tuple));
    auto* data = static_cast<bytea*>(palloc(VARHDRSZ + bytes));
    SET_VARSIZE(data, VARHDRSZ + bytes);
    memcpy(VARDATA(data), tuple, bytes);
    Datum row[2] = {Int64GetDatum(address_number(tid)), PointerGetDatum(data)};
    bool row_nulls[2] = {false, false};
    MinimalTuple minimal = heap_form_minimal_tuple(sort->slot->tts_tupleDescriptor, row, row_nulls);
    ExecStoreMinimalTuple(minimal, sort->slot, false);
    tuplesort_puttupleslot(sort->sort, sort->slot);
    ExecClearTuple(sort->slot);
    add_totals(&sort->totals, {1, bytes, bytes, bytes});
}

void perform_included_sort(IncludedSort* sort)
{
    tuplesort_performsort(sort->sort);
}

IncludedTotals included_totals(const IncludedSort* sort)
{
    return sort->totals;
}

void end_included_sort(IncludedSort* sort)
{
    ExecDropSingleTupleTableSlot(sort->slot);
    tuplesort_end(sort->sort);
    pfree(sort);
}

void store_included(IncludedSort* sort, const IncludedTotals& totals, uint64 rows, IndexWriter* writer)
{
    if (totals.rows != rows) {
        elog(ERROR, "the build has " UINT64_FORMAT " rows and " UINT64_FORMAT " included tuples", rows, totals.rows);
    }
    if (rows == 0) return;
    add_index_array(writer, tuples_shape(totals));
    BufFile* places = totals.shortest < totals.longest ? BufFileCreateTemp(false) : nullptr;
    write_tuples(sort, writer, places);
    if (places == nullptr) return;
    write_places(places, rows, writer);
    BufFileClose(places);
}

}  // namespace pgwarp
