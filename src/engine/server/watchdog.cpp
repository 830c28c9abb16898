#include "engine/server/watchdog.h"

#include <cstdlib>
#include <utility>

#include "engine/server/log.h"
#include "protocol/exit_codes.h"

namespace pgwarp
{

Watchdog::Watchdog(std::function<std::chrono::nanoseconds()> patience_left, std::function<void()> overdue,
                   std::chrono::milliseconds interval)
    : patience_left_(std::move(patience_left)),
      overdue_(std::move(overdue)),
      longest_gap_(4 * interval),
      looks_(interval, [this] { look(); })
{
}

void Watchdog::look()
{
    // After the process was stopped for a while, waits are overdue though the device works. So a look after a gap does
    // not count, and two looks in a row must find a wait overdue.
    const auto now = std::chrono::steady_clock::now();
    const bool stopped = now - looked_ > longest_gap_;
    looked_ = now;
    const bool overdue = !stopped && patience_left_() < std::chrono::nanoseconds(0);
    if (overdue && was_overdue_ && !std::exchange(told_, true)) overdue_();
    was_overdue_ = overdue;
}

void end_hung_engine()
{
    log_line(LogLevel::fatal, "the device does not answer: this engine ends, and is started again");
    std::_Exit(exit_device_hangs);
}

}  // namespace pgwarp
