// Collects the rows of a build from the heap, in one process or in workers and the leader together.
#pragma once

#include "postgres/am/attribute_code.h"
#include "postgres/build/engine_build.h"
#include "postgres/build/included_sort.h"
#include "postgres/types/list_value.h"

extern "C" {
#include "access/parallel.h"
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// The part of one process in the collection of rows.
struct RowCollector {
    EngineBuild* build;  // begun with the first row, so an empty table needs no engine
    RowSink* sink;
    AttributeCoder coder;
    const ListType* list;    // null for vectors; known with the first row
    float* vector;           // [dimensions], for rows with attributes
    IncludedSort* included;  // null without included columns; owned by the caller
    UnplacedSort* unplaced;  // owned by the caller
    MemoryContext row_context;
    double indexed;    // number of rows with a place
    bool keeps_norms;  // am/row_norms.h; known with the first row
    NormRange norms;
};

// An empty collector, allocated in the current memory context. close_collector sends the last rows to the engine and
// frees the collector, but neither the build nor the sorts.
RowCollector* open_collector(Relation index, EngineBuild* build, UnplacedSort* unplaced);
void close_collector(RowCollector* collector);
// An IndexBuildCallback whose state is a RowCollector.
void collect_row(Relation index, ItemPointer tid, Datum* values, bool* nulls, bool alive, void* state);

// The rows of the heap, counted and collected. end_collected_rows() frees it.
struct CollectedRows {
    double heap_tuples;
    double placed;
    NormRange norms;         // of the placed rows, where the index keeps them
    UnplacedSort* unplaced;  // not sorted yet
    IncludedSort* included;  // sorted; null without included columns
    IncludedTotals included_totals;
    ParallelContext* parallel;  // its shared memory holds the sorted tuples; null when no worker took part
};
// Frees the unplaced rows, the included tuples, and the parallel context.
void end_collected_rows(CollectedRows* collected);

// Collects rows with workers. False when no worker could be started; then nothing was done.
bool collect_in_parallel(Relation heap, Relation index, IndexInfo* info, EngineBuild* build, int workers,
                         CollectedRows* collected);

}  // namespace pgwarp
