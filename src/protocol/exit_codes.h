// Exit codes of pgwarp-engine, which the launcher reads.
#pragma once

namespace pgwarp
{

inline constexpr int exit_device_hangs = 3;  // the watchdog ended the process
inline constexpr int exit_other_engine = 4;  // another engine serves this data directory

}  // namespace pgwarp
