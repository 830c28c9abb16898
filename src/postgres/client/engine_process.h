// The engine as a child process of the launcher: start, log, stop.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/settings.h"

extern "C" {
#include "datatype/timestamp.h"
}

namespace pgwarp
{

struct EngineProcess {
    pid_t pid;        // 0 = none
    int log_pipe;     // read end of its stderr; -1 = none
    char line[1024];  // of the log, not yet ended
    int line_length;
    TimestampTz started_at;
};

// The engine's arguments; comparable by memcmp.
struct EngineArguments {
    char device[16];
    char gpus[most_gpus_length + 1];
    char memory[32];
    char threads[16];
};

// The file of this library; empty when the system doesn't tell. Valid as long as the library is loaded.
const char* library_path();

void collect_engine_arguments(EngineArguments* arguments);

// Spawns the engine in a process session of its own, with nothing of ours open but the pipe. False, with the reason in
// the log, when there is no such program or no process to be had.
bool start_engine_process(EngineProcess* engine);

// Hands complete lines of the engine's stderr to the server's log. False at its end.
bool forward_engine_log(EngineProcess* engine);

// How an engine ended. not_yet: a driver may need long to give back what the process had. other_serves: it found
// another one at work.
enum class EngineEnd { not_yet, ended, other_serves };
// Collects a process that ends by itself, without waiting for it, and logs how it ended. Its log is at an end.
EngineEnd report_engine_exit(EngineProcess* engine);

// Asks the engine to end, insists after some seconds. False when it was killed and isn't gone yet: then it is to be
// collected by report_engine_exit().
bool stop_engine_process(EngineProcess* engine);

}  // namespace pgwarp
