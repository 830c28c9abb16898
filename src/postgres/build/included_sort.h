// The included tuples of a build: collected beside the rows that go to the engine, by one process or several, sorted by
// heap address, which is the order of rows.
#pragma once

#include "postgres/storage/included_writer.h"

extern "C" {
#include "utils/tuplesort.h"
}

namespace pgwarp
{

// Lives in the memory context in which it was begun. `coordinate`: null for one process alone (see tuplesort.h).
struct IncludedSort;
IncludedSort* begin_included_sort(Relation index, int work_mem_kb, SortCoordinate coordinate);
// Takes a row's tuple: values and nulls of all columns of the index.
void add_included(IncludedSort* sort, ItemPointer tid, const Datum* values, const bool* nulls);
// Takes a tuple that was stored before, with its row's address.
void add_stored_included(IncludedSort* sort, Tid tid, const void* tuple, uint32 bytes);
// Sorts. A worker's tuples are then the leader's, whose own sort takes them over.
void perform_included_sort(IncludedSort* sort);
IncludedTotals included_totals(const IncludedSort* sort);
void end_included_sort(IncludedSort* sort);

// Hands the sorted tuples out.
using IncludedVisit = void (*)(void* state, const void* tuple, uint32 bytes);
void visit_sorted_included(IncludedSort* sort, IncludedVisit visit, void* state);

// Writes the sorted tuples as arrays of the index, which has `rows` rows.
void store_included(IncludedSort* sort, const IncludedTotals& totals, uint64 rows, const IncludedTarget& target);

}  // namespace pgwarp
