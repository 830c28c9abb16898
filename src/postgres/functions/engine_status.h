// The state of pgwarp-engine.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

namespace pgwarp
{

// Returns a copy of the engine's status, palloc'ed, with its mirrors behind it; null when no launcher runs.
StatusReply* fetch_status();

}  // namespace pgwarp
