// Names a parked request: the I/O thread that keeps it, and its number there. Waking a request that is gone does
// nothing.
#pragma once

#include <cstdint>
#include <vector>

namespace pgwarp
{

class IoThread;

struct Ticket {
    IoThread* thread = nullptr;
    std::uint64_t number = 0;
    friend bool operator==(const Ticket&, const Ticket&) = default;
};

// Makes the I/O threads handle these parked requests again. Thread-safe.
void wake(const std::vector<Ticket>& tickets);

}  // namespace pgwarp
