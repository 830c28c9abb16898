// Sends a column's values, or a sample of them, to a build in the engine.
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
    Oid type;             // expected type of the column; other vector types are accepted too
    ElementType element;  // element type of the table being read
    List* tables;         // of Oids: the table with its partitions and children, locked
    uint64 seed;
    uint64 wanted;       // rows
    EngineBuild* build;  // begun with the first row; shape.dimensions is 0 until then
    RowSink* sink;
    MemoryContext lasting;      // for data that outlives a row
    MemoryContext row_context;  // reset after each row
    uint64 counted;             // rows that the snapshot sees, without NULLs
    uint64 sent;
};

// Checks that the caller may read the column and that it has a vector type; raises an error otherwise.
void open_sampled_column(SampledColumn* sampled);

// Sends about `wanted` rows to the build, the same rows for the same table, snapshot and seed; all rows if there are
// fewer.
void send_sample(SampledColumn* sampled);

}  // namespace pgwarp
