#include "engine/server/log.h"

#include <unistd.h>

#include <mutex>

namespace pgwarp
{

namespace
{

std::mutex sink_mutex;
std::function<void(LogLevel, const std::string&)> log_sink;

const char* level_name(LogLevel level)
{
    switch (level) {
        case LogLevel::debug:
            return "DEBUG";
        case LogLevel::log:
            return "LOG";
        case LogLevel::warning:
            return "WARNING";
        case LogLevel::error:
            return "ERROR";
        case LogLevel::fatal:
            return "FATAL";
    }
    return "LOG";
}

}  // namespace

void log_line(LogLevel level, const std::string& message)
{
    {
        std::lock_guard lock(sink_mutex);
        if (log_sink) {
            log_sink(level, message);
            return;
        }
    }
    std::string line = std::string(level_name(level)) + ": ";
    // A line break or a control character in a message must not look like another line.
    for (char c : message) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    line += '\n';
    // A closed log pipe is no reason to fail.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void set_log_sink(std::function<void(LogLevel, const std::string&)> sink)
{
    std::lock_guard lock(sink_mutex);
    log_sink = std::move(sink);
}

}  // namespace pgwarp
