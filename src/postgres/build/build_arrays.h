// Writes the arrays that the engine built. Workers and the leader write large arrays together, each reading pieces from
// the engine over its own connection; the leader writes the small ones.
#pragma once

#include "postgres/build/engine_build.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Writes every array of the build. `workers`: the number of processes that may help.
void write_built_arrays(Relation heap, Relation index, const IndexInfo* info, int workers, const EngineBuild* build,
                        const BuildRunReply* result, IndexWriter* writer);

}  // namespace pgwarp
