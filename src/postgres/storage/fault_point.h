// Places where a build for tests (PGWARP_FAULTS) ends a process, so that the server recovers as from a crash. In other
// builds nothing happens there.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Between two changes of pages. Counts; the pgwarp.fault_step-th call of this session kills its process.
void fault_point(const char* where);

// Where shared memory is attached: with pgwarp.fault_shared_memory there is none left.
void fault_shared_memory();

// Defines these settings in a build for tests. Called by _PG_init, before the prefix is reserved.
void define_fault_settings();

}  // namespace pgwarp
