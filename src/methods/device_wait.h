// Deadlines of the waits for a device. A hung device reports no error, so searchers register their waits here, and the
// engine ends the process when a wait is overdue. This file needs no CUDA.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pgwarp
{

using DeviceClock = std::chrono::steady_clock;

// The longest wait of a thread without a DevicePatience.
inline constexpr std::chrono::milliseconds device_patience{3000};

// Registers a wait of the calling thread for this object's lifetime. Costs one reading of the clock and two atomic
// operations.
class DeviceWait
{
public:
    DeviceWait();
    ~DeviceWait();
    DeviceWait(const DeviceWait&) = delete;
    DeviceWait& operator=(const DeviceWait&) = delete;

private:
    std::size_t slot_;  // in the table; past its end where the table is full: then the wait is not watched
};

// Raises the longest wait of the calling thread to `patience` for this object's lifetime, and never lowers it.
class DevicePatience
{
public:
    explicit DevicePatience(std::chrono::milliseconds patience);
    ~DevicePatience();
    DevicePatience(const DevicePatience&) = delete;
    DevicePatience& operator=(const DevicePatience&) = delete;

private:
    std::chrono::milliseconds before_;
};

// Returns the time until the earliest deadline of all registered waits; negative when that wait is overdue.
// DeviceClock::duration::max(): no thread waits. Thread-safe.
DeviceClock::duration patience_left(DeviceClock::time_point now = DeviceClock::now());

}  // namespace pgwarp
