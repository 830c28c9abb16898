// A sample of a table's rows, on which the engine is trained before the rows come.
#pragma once

#include "postgres/build/engine_build.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Begins the build, and sends the engine the sample that it wants, of pages spread over the heap. Does nothing for a
// small heap, or without the engine; sends nothing where the engine wants none. Sets build->expected_rows to the number
// of rows by the sample.
void send_sample(Relation heap, Relation index, IndexInfo* info, EngineBuild* build);

}  // namespace pgwarp
