// Writing what the engine built: large arrays by workers and the leader together, each reading pieces of them from the
// engine over its own connection; small ones by the leader.
#pragma once

#include "postgres/build/engine_build.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// Writes every array of the build. workers: how many processes may help.
void write_built_arrays(Relation heap, Relation index, const IndexInfo* info, int workers, const EngineBuild* build,
                        const BuildRunReply* result, IndexWriter* writer);

}  // namespace pgwarp
