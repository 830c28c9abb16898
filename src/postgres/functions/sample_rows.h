// A column's values, or a sample of them, on their way to a build in the engine.
#pragma once

#include "postgres/build/engine_build.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace pgwarp
{

struct SampledColumn {
    Oid table;
    const char* column;
    Oid type;             // that the column must have; any other of the vector types does as well
    ElementType element;  // of the table at hand
    List* tables;         // of Oids: the table with its partitions and children, locked
    uint64 seed;
    uint64 wanted;       // rows
    EngineBuild* build;  // begun with the first row; shape.dimensions is 0 until they are known
    RowSink* sink;
    MemoryContext lasting;      // for memory that outlives a row
    MemoryContext row_context;  // reset by every row
    uint64 counted;             // rows that the snapshot sees, NULLs left out
    uint64 sent;
};

// Checks that the caller may read the column, and that it is one of vectors.
void open_sampled_column(SampledColumn* sampled);

// Sends about `wanted` rows to the build, the same ones for the same table, snapshot and seed; all when there are no
// more.
void send_sample(SampledColumn* sampled);

}  // namespace pgwarp
