// Progress of a build in pg_stat_progress_create_index: one number encodes the phase and its percentage.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Shows `done` of `total` units of a phase; total 0: of an unknown number. Does nothing outside CREATE INDEX and
// REINDEX.
void report_build_phase(const char* phase, uint64 done, uint64 total);

}  // namespace pgwarp
