// Descriptions of this library's background workers.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace pgwarp
{

// Describes a worker that starts when the server is consistent and is restarted one second after a failure.
BackgroundWorker describe_worker(const char* name, const char* function);

}  // namespace pgwarp
