// Fault points of test builds.
#include "postgres/storage/fault_point.h"

#include <unistd.h>
#include <climits>
#include <csignal>

namespace pgwarp
{

#ifdef PGWARP_FAULTS

static int setting_fault_step = 0;
static bool setting_fault_shared_memory = false;

void fault_point(const char* where)
{
    static int passed = 0;
    ++passed;
    elog(DEBUG1, "fault point %d: %s", passed, where);
    if (setting_fault_step != passed) return;
    elog(LOG, "killed at fault point %d: %s", passed, where);
    kill(getpid(), SIGKILL);
}

void fault_shared_memory()
{
    if (!setting_fault_shared_memory) return;
    ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("a test leaves no shared memory")));
}

void define_fault_settings()
{
    constexpr int flags = GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE;
    DefineCustomIntVariable("pgwarp.fault_step", "Fault point at which a session of a test build is killed.", nullptr,
                            &setting_fault_step, 0, 0, INT_MAX, PGC_SUSET, flags, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.fault_shared_memory", "Leaves sessions of a test build no shared memory.", nullptr,
                             &setting_fault_shared_memory, false, PGC_SUSET, flags, nullptr, nullptr, nullptr);
}

#else

void fault_point(const char*) {}
void fault_shared_memory() {}
void define_fault_settings() {}

#endif

}  // namespace pgwarp
