// Background workers of this library.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace pgwarp
{

// A worker that runs at a consistent state and is restarted after a second.
BackgroundWorker describe_worker(const char* name, const char* function);

}  // namespace pgwarp
