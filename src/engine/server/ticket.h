// Names a parked request: which I/O thread keeps it, and under which number. Waking one that is gone does nothing.
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

// Has parked requests tried again by their threads. Thread-safe.
void wake(const std::vector<Ticket>& tickets);

}  // namespace pgwarp
