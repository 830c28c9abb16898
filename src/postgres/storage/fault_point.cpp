#include "postgres/storage/fault_point.h"

#include "postgres/postgres_headers.h"

#include <unistd.h>
#include <climits>
#include <csignal>

namespace pgwarp
{

#ifdef PGWARP_FAULTS

static int setting_fault_step = 0;

void fault_point(const char* where)
{
    static int passed = 0;
    ++passed;
    elog(DEBUG1, "fault point %d: %s", passed, where);
    if (setting_fault_step != passed) return;
    elog(LOG, "killed at fault point %d: %s", passed, where);
    kill(getpid(), SIGKILL);
}

void define_fault_settings()
{
    DefineCustomIntVariable("pgwarp.fault_step", "Fault point at which a session of a test build is killed.", nullptr,
                            &setting_fault_step, 0, 0, INT_MAX, PGC_SUSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, nullptr,
                            nullptr, nullptr);
}

#else

void fault_point(const char*) {}
void define_fault_settings() {}

#endif

}  // namespace pgwarp
