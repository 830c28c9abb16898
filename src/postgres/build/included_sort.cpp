// Included tuples in a tuplesort of two columns.
#include "postgres/build/included_sort.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "executor/tuptable.h"
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

int64 address_number(Tid tid)
{
    return static_cast<int64>(tid.block) << 16 | tid.offset;
}

void write_sorted(void* state, const void* tuple, uint32 bytes)
{
    write_included(static_cast<IncludedWriter*>(state), tuple, bytes);
}

TupleDesc sorted_descriptor()
{
    TupleDesc descriptor = CreateTemplateTupleDesc(2);
    TupleDescInitEntry(descriptor, 1, "address", INT8OID, -1, 0);
    TupleDescInitEntry(descriptor, 2, "included", BYTEAOID, -1, 0);
    return descriptor;
}

}  // namespace

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
    add_stored_included(sort, {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0}, tuple,
                        static_cast<uint32>(IndexTupleSize(tuple)));
}

void add_stored_included(IncludedSort* sort, Tid tid, const void* tuple, uint32 bytes)
{
    auto* data = static_cast<bytea*>(palloc(VARHDRSZ + bytes));
    SET_VARSIZE(data, VARHDRSZ + bytes);
    memcpy(VARDATA(data), tuple, bytes);
    Datum row[2] = {Int64GetDatum(address_number(tid)), PointerGetDatum(data)};
    bool row_nulls[2] = {false, false};
#if PG_VERSION_NUM >= 180000
    MinimalTuple minimal = heap_form_minimal_tuple(sort->slot->tts_tupleDescriptor, row, row_nulls, 0);
#else
    MinimalTuple minimal = heap_form_minimal_tuple(sort->slot->tts_tupleDescriptor, row, row_nulls);
#endif
    ExecStoreMinimalTuple(minimal, sort->slot, false);
    tuplesort_puttupleslot(sort->sort, sort->slot);
    ExecClearTuple(sort->slot);
    pfree(minimal);
    pfree(data);
    count_included(&sort->totals, bytes);
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

void visit_sorted_included(IncludedSort* sort, IncludedVisit visit, void* state)
{
    while (tuplesort_gettupleslot(sort->sort, true, false, sort->slot, nullptr)) {
        bool is_null = false;
        bytea* tuple = DatumGetByteaPP(slot_getattr(sort->slot, 2, &is_null));
        visit(state, VARDATA_ANY(tuple), static_cast<uint32>(VARSIZE_ANY_EXHDR(tuple)));
    }
    ExecClearTuple(sort->slot);
}

void store_included(IncludedSort* sort, const IncludedTotals& totals, uint64 rows, const IncludedTarget& target)
{
    if (totals.rows != rows) {
        elog(ERROR, "the build has " UINT64_FORMAT " rows and " UINT64_FORMAT " included tuples", rows, totals.rows);
    }
    IncludedWriter* included = begin_included(target, totals);
    visit_sorted_included(sort, write_sorted, included);
    end_included(included);
}

}  // namespace pgwarp
