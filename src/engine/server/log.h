// Log lines on standard error, "LEVEL: message", which the launcher reads and hands to PostgreSQL's log.
#pragma once

#include <functional>
#include <string>

namespace pgwarp
{

enum class LogLevel { debug, log, warning, error, fatal };

// Writes one line in one write(2). Thread-safe.
void log_line(LogLevel level, const std::string& message);

// Sends lines elsewhere (tests); an empty function restores standard error.
void set_log_sink(std::function<void(LogLevel, const std::string&)> sink);

}  // namespace pgwarp
