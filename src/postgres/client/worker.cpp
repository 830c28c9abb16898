#include "postgres/client/worker.h"

#include "postgres/client/engine_process.h"

namespace pgwarp
{

BackgroundWorker describe_worker(const char* name, const char* function)
{
    BackgroundWorker worker;
    memset(&worker, 0, sizeof(worker));
    strlcpy(worker.bgw_name, name, BGW_MAXLEN);
    strlcpy(worker.bgw_type, name, BGW_MAXLEN);
    // Name this very file, wherever it was found, if its path fits.
    const char* library = library_path();
    const bool fits = library[0] == '/' && strlen(library) < sizeof(worker.bgw_library_name);
    strlcpy(worker.bgw_library_name, fits ? library : "$libdir/pgwarp", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, function, BGW_MAXLEN);
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_ConsistentState;
    worker.bgw_restart_time = 1;
    return worker;
}

}  // namespace pgwarp
