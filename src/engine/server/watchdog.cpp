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
    // A process that was stopped for a while goes on with waits that are overdue, but not for long: two looks decide,
    // and none that comes after a gap.
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
