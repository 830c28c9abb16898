// The unplaced rows of an index. The engine knows nothing of them. The index keeps their addresses in a segment and a
// delta log of their own, and a scan offers them when it has offered all other rows.
#pragma once

#include "postgres/storage/directory.h"
#include "postgres/storage/unplaced_row.h"

extern "C" {
#include "utils/tuplesort.h"
}

namespace pgwarp
{

// Puts unplaced rows in order, in `memory_kb` of memory and temporary files. Lives in the memory context in which it
// was begun. `coordinate`: null for one process alone (see tuplesort.h).
struct UnplacedSort;
UnplacedSort* begin_unplaced_sort(int memory_kb, SortCoordinate coordinate);
void add_unplaced(UnplacedSort* sort, const UnplacedRow& row);
// Rows that were added by this process.
uint64 count_unplaced(const UnplacedSort* sort);
// Sorts. A worker's rows are then the leader's, whose own sort takes them over.
void perform_unplaced_sort(UnplacedSort* sort);
// The next row in order; false at the end.
bool next_unplaced(UnplacedSort* sort, UnplacedRow* row);
void end_unplaced_sort(UnplacedSort* sort);

// Sorts the rows added and writes them as a segment, all alive, of the directory's generation.
void write_unplaced(PageSource* pages, UnplacedSort* sort, Directory* directory);

using UnplacedVisit = void (*)(void* state, const UnplacedRow& row);
// Visits the live rows: those of the segment in order, then those of the log up to the entry `end`.
ReadResult visit_unplaced(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                          UnplacedVisit visit, void* state);

}  // namespace pgwarp
