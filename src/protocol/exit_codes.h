// With what codes pgwarp-engine ends, for the launcher.
#pragma once

namespace pgwarp
{

inline constexpr int exit_device_hangs = 3;  // the watchdog has ended it
inline constexpr int exit_other_engine = 4;  // another engine serves this data directory

}  // namespace pgwarp
