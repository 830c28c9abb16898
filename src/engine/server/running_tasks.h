// The number of runnable tasks on the system, as /proc/loadavg gives it.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/server/file_descriptor.h"

namespace pgwarp
{

class RunningTasks
{
public:
    RunningTasks();
    // Threads of all processes that run or wait for a processor, the calling one among them. Nothing where the system
    // doesn't tell. Thread-safe; takes 2 us.
    std::optional<std::size_t> count() const;

private:
    FileDescriptor file_;
};

}  // namespace pgwarp
