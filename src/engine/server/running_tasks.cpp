#include "engine/server/running_tasks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace pgwarp
{

RunningTasks::RunningTasks() : file_(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC)) {}

std::optional<std::size_t> RunningTasks::count() const
{
    char text[128];
    const ssize_t length = file_ ? ::pread(file_.get(), text, sizeof(text) - 1, 0) : -1;
    if (length <= 0) return std::nullopt;
    text[length] = '\0';
    std::size_t running = 0;
    if (std::sscanf(text, "%*s %*s %*s %zu/", &running) != 1) return std::nullopt;
    return running;
}

}  // namespace pgwarp
