// Points at which a build for tests (PGWARP_FAULTS) kills a process, so that the server recovers as from a crash. In
// other builds these functions do nothing.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// A point between two changes of pages. The pgwarp.fault_step-th call in a session kills its process.
void fault_point(const char* where);

// Called before shared memory is attached: with pgwarp.fault_shared_memory it raises an error.
void fault_shared_memory();

// Defines these settings in a build for tests. Called by _PG_init, before the prefix is reserved.
void define_fault_settings();

}  // namespace pgwarp
