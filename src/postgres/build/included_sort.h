// Sorts the included tuples of a build by heap address, which is the order of rows. One process or several collect them
// beside the rows that go to the engine.
#pragma once

#include "postgres/storage/included_writer.h"

extern "C" {
#include "utils/tuplesort.h"
}

namespace pgwarp
{

// Allocated in the current memory context. `coordinate`: null for one process alone (see tuplesort.h).
struct IncludedSort;
IncludedSort* begin_included_sort(Relation index, int work_mem_kb, SortCoordinate coordinate);
// Forms and adds a row's tuple from the values and nulls of all columns of the index.
void add_included(IncludedSort* sort, ItemPointer tid, const Datum* values, const bool* nulls);
// Adds a stored tuple and its row's address.
void add_stored_included(IncludedSort* sort, Tid tid, const void* tuple, uint32 bytes);
// Sorts. The leader's sort then merges the workers' tuples.
void perform_included_sort(IncludedSort* sort);
IncludedTotals included_totals(const IncludedSort* sort);
void end_included_sort(IncludedSort* sort);

// Passes the sorted tuples to a visitor.
using IncludedVisit = void (*)(void* state, const void* tuple, uint32 bytes);
void visit_sorted_included(IncludedSort* sort, IncludedVisit visit, void* state);

// Writes the sorted tuples as arrays of the index, which has `rows` rows.
void store_included(IncludedSort* sort, const IncludedTotals& totals, uint64 rows, const IncludedTarget& target);

}  // namespace pgwarp
