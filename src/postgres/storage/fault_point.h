// Places where a build for tests (PGWARP_FAULTS) ends the process, so that the server recovers as from a crash. In
// other builds nothing happens there.
#pragma once

namespace pgwarp
{

// Counts; the pgwarp.fault_step-th call of this session kills the process.
void fault_point(const char* where);

// Defines pgwarp.fault_step in a build for tests.
void define_fault_settings();

}  // namespace pgwarp
