// Which threads wait for a device, and until when at most: a device that hangs never tells. Searchers register their
// waits here; the engine looks at the clock and ends the process when one is overdue. Knows nothing of CUDA.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pgwarp
{

using DeviceClock = std::chrono::steady_clock;

// A wait may take so long where its thread asks for no more patience.
inline constexpr std::chrono::milliseconds device_patience{3000};

// The calling thread waits for a device while this lives. Costs a look at the clock and two atomic operations.
class DeviceWait
{
public:
    DeviceWait();
    ~DeviceWait();
    DeviceWait(const DeviceWait&) = delete;
    DeviceWait& operator=(const DeviceWait&) = delete;

private:
    std::size_t slot_;  // of the table; past its end where more threads wait than it holds, and this one is not seen
};

// While this lives, each wait of the calling thread may take so long, if that is more than it might before.
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

// What a wait under way may still take, of the wait that is closest to its deadline or the longest past it; negative:
// overdue for so long. DeviceClock::duration::max(): nobody waits. Any thread, at any time.
DeviceClock::duration patience_left(DeviceClock::time_point now = DeviceClock::now());

}  // namespace pgwarp
