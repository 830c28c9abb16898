// A table of deadlines, one slot a wait. Threads take slots by one atomic exchange each.
#include "methods/device_wait.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace pgwarp
{

namespace
{

constexpr std::size_t slots = 1024;
constexpr std::size_t no_slot = slots;
constexpr DeviceClock::rep is_free = 0;

// The deadline of a registered wait, in ticks of the clock, in a cache line of its own.
struct alignas(64) Slot {
    std::atomic<DeviceClock::rep> deadline{is_free};
};
std::array<Slot, slots> table;      // a thread looks for a free slot from usual_slot on
std::atomic<std::size_t> used{0};   // all slots from here on were never taken
std::atomic<std::size_t> names{0};  // threads that have waited so far
thread_local std::size_t usual_slot = no_slot;
thread_local std::chrono::milliseconds patience = device_patience;

bool take(std::size_t slot, DeviceClock::rep deadline)
{
    DeviceClock::rep expected = is_free;
    return table[slot].deadline.compare_exchange_strong(expected, deadline);
}

void mark_used(std::size_t slot)
{
    std::size_t known = used.load();
    while (known <= slot && !used.compare_exchange_weak(known, slot + 1)) {
    }
}

}  // namespace

DeviceWait::DeviceWait() : slot_(no_slot)
{
    const DeviceClock::rep deadline = (DeviceClock::now() + patience).time_since_epoch().count();
    if (usual_slot == no_slot) usual_slot = names.fetch_add(1) % slots;
    for (std::size_t turn = 0; turn < slots; ++turn) {
        const std::size_t slot = (usual_slot + turn) % slots;
        if (!take(slot, deadline)) continue;
        mark_used(slot);
        slot_ = slot;
        return;
    }
}

DeviceWait::~DeviceWait()
{
    if (slot_ != no_slot) table[slot_].deadline.store(is_free);
}

DevicePatience::DevicePatience(std::chrono::milliseconds asked) : before_(patience)
{
    patience = std::max(patience, asked);
}

DevicePatience::~DevicePatience()
{
    patience = before_;
}

DeviceClock::duration patience_left(DeviceClock::time_point now)
{
    auto least = DeviceClock::duration::max();
    const std::size_t end = used.load();
    for (std::size_t slot = 0; slot < end; ++slot) {
        const DeviceClock::rep deadline = table[slot].deadline.load();
        if (deadline == is_free) continue;
        least = std::min(least, DeviceClock::duration(deadline) - now.time_since_epoch());
    }
    return least;
}

}  // namespace pgwarp
