// Ends the process when a search waits for a device beyond its deadline: a hung device reports nothing, and all
// connections of the waiting thread hang with it. The launcher starts another engine.
#pragma once

#include <chrono>
#include <functional>

#include "engine/server/periodic.h"

namespace pgwarp
{

inline constexpr std::chrono::milliseconds watchdog_interval{250};

class Watchdog
{
public:
    // patience_left: how long the wait that is closest to its deadline may still take; negative when it is overdue.
    // overdue: called once, on the watchdog's thread.
    Watchdog(std::function<std::chrono::nanoseconds()> patience_left, std::function<void()> overdue,
             std::chrono::milliseconds interval = watchdog_interval);

private:
    void look();

    const std::function<std::chrono::nanoseconds()> patience_left_;
    const std::function<void()> overdue_;
    const std::chrono::milliseconds longest_gap_;  // between two looks, of a process that was not stopped
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
    bool was_overdue_ = false;
    bool told_ = false;
    Periodic looks_;  // the last member: its thread uses the others
};

// Logs a line and ends the process at once. No destructor runs, because any call of the device may hang as well.
[[noreturn]] void end_hung_engine();

}  // namespace pgwarp
