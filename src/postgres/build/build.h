// Collecting the rows of a build from the heap: by one process, or by workers and the leader together.
#pragma once

#include "postgres/build/engine_build.h"
#include "postgres/build/included_sort.h"

extern "C" {
#include "access/parallel.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// One process's part in a build.
struct RowCollector {
    EngineBuild* build;  // begun with the first row, so that an empty table needs no engine
    RowSink* sink;
    IncludedSort* included;  // null without included columns; the caller's
    UnplacedSort* unplaced;  // the caller's
    MemoryContext row_context;
    double indexed;  // with a place
};

RowCollector* open_collector(EngineBuild* build, UnplacedSort* unplaced);
void close_collector(RowCollector* collector);
// IndexBuildCallback with a RowCollector.
void collect_row(Relation index, ItemPointer tid, Datum* values, bool* nulls, bool alive, void* state);

struct CollectedRows {
    double heap_tuples;
    double placed;
    UnplacedSort* unplaced;  // not sorted yet
    IncludedSort* included;  // sorted; null without included columns
    IncludedTotals included_totals;
    ParallelContext* parallel;  // whose shared memory the sorted tuples need, or null
};
// Gives back what the unplaced rows and the rows' included tuples took.
void end_collected_rows(CollectedRows* collected);

// Collects with workers; false when none could be had, and nothing was done.
bool collect_in_parallel(Relation heap, Relation index, IndexInfo* info, EngineBuild* build, int workers,
                         CollectedRows* collected);

}  // namespace pgwarp
