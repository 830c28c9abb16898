// The engine as a child process of the launcher: start, log, stop.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/settings.h"

extern "C" {
#include "datatype/timestamp.h"
}

namespace pgwarp
{

// The state of one engine process; the launcher owns it.
struct EngineProcess {
    pid_t pid;        // 0 = none
    int log_pipe;     // read end of its stderr; -1 = none
    char line[1024];  // start of a log line whose end has not arrived
    int line_length;
    TimestampTz started_at;
};

// The engine's arguments. Zeroed before they are filled, so that memcmp compares them.
struct EngineArguments {
    char device[16];
    char gpus[most_gpus_length + 1];
    char memory[32];
    char threads[16];
};

// The path of this library; empty when dladdr() does not find it. Valid as long as the library is loaded.
const char* library_path();

// Fills the arguments from the present settings.
void collect_engine_arguments(EngineArguments* arguments);

// Starts the engine in a process session of its own; of the launcher's descriptors it keeps only the log pipe. Returns
// false, and logs the reason, when the program is missing or no process can be created.
bool start_engine_process(EngineProcess* engine);

// Forwards complete lines of the engine's stderr to the server's log. Returns false at the end of the stream.
bool forward_engine_log(EngineProcess* engine);

// How an engine ended. not_yet: the process still exists, because a driver may take long to free its memory.
// other_serves: it ended because another engine serves this data directory.
enum class EngineEnd { not_yet, ended, other_serves };
// Collects a process that ends by itself, without waiting for it, and logs how it ended. Call it after the end of the
// log.
EngineEnd report_engine_exit(EngineProcess* engine);

// Sends SIGTERM to the engine, and SIGKILL after some seconds. Returns false when the killed process still exists: then
// report_engine_exit() collects it later.
bool stop_engine_process(EngineProcess* engine);

}  // namespace pgwarp
