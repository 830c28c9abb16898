// Sends a bitmap of heap addresses to the engine, which keeps it for searches of this connection.
#pragma once

#include "postgres/bitmap/search_tids.h"
#include "postgres/client/mirror_request.h"

namespace pgwarp
{

LoadOutcome send_tids(const SearchTids& tids);

}  // namespace pgwarp
