// The unplaced rows of an index, which the engine does not know. A segment and a delta log of their own hold their
// addresses and attributes, and a scan offers them after all other rows.
#pragma once

#include "postgres/storage/directory.h"
#include "postgres/storage/unplaced_row.h"

extern "C" {
#include "utils/tuplesort.h"
}

namespace pgwarp
{

// Sorts unplaced rows, with this number of attributes, in `memory_kb` of memory and temporary files. Allocated in the
// current memory context. `coordinate`: null for one process alone (see tuplesort.h).
struct UnplacedSort;
UnplacedSort* begin_unplaced_sort(int memory_kb, uint32 attribute_count, SortCoordinate coordinate);
void add_unplaced(UnplacedSort* sort, const UnplacedRow& row);
// The number of rows that this process added.
uint64 count_unplaced(const UnplacedSort* sort);
// Sorts. The leader's sort then merges the workers' rows.
void perform_unplaced_sort(UnplacedSort* sort);
// The next row in order, valid until the next call; false at the end.
bool next_unplaced(UnplacedSort* sort, UnplacedRow* row);
void end_unplaced_sort(UnplacedSort* sort);

// Sorts the added rows and writes them as a segment of the directory's generation, all alive.
void write_unplaced(PageSource* pages, UnplacedSort* sort, Directory* directory);

using UnplacedVisit = void (*)(void* state, const UnplacedRow& row);
// Visits the live rows: those of the segment in order, then those of the log up to the entry `end`.
ReadResult visit_unplaced(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                          UnplacedVisit visit, void* state);

}  // namespace pgwarp
