#include "engine/device/gpu_refusals.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

// An eighth of an index must be free on a GPU beside it, for its searches, and beyond the room that was too little.
constexpr std::uint64_t search_room = 8;

}  // namespace

// The method decides how much memory an index takes beyond its arrays; only the room that was too little is certain. So
// an attempt that fails asks for more room at the next one.
std::uint64_t GpuRefusals::least_room(std::uint64_t bytes, std::uint64_t room)
{
    return std::max(bytes, room) + bytes / search_room;
}

void GpuRefusals::note(const MirrorKey& key, std::uint64_t bytes, std::uint64_t room, Clock::time_point now)
{
    std::lock_guard lock(mutex_);
    const auto [found, is_new] =
        refusals_.try_emplace(relation_of(key), Refusal{now + first_pause, first_pause, least_room(bytes, room)});
    if (is_new) return;
    Refusal& refusal = found->second;
    // Many searches and loads meet the same lack of memory.
    if (now < refusal.until) return;
    // After the GPU has served the index for long, a refusal has another reason.
    const Clock::duration pause = is_old(refusal, now) ? first_pause : std::min(2 * refusal.pause, longest_pause);
    refusal = {now + pause, pause, least_room(bytes, room)};
}

bool GpuRefusals::holds(const MirrorKey& key, Clock::time_point now) const
{
    std::lock_guard lock(mutex_);
    const auto found = refusals_.find(relation_of(key));
    return found != refusals_.end() && now < found->second.until;
}

MirrorKey GpuRefusals::relation_of(MirrorKey key)
{
    key.generation = 0;
    key.device = MirrorDevice::best;
    return key;
}

bool GpuRefusals::is_old(const Refusal& refusal, Clock::time_point now)
{
    return now - refusal.until > longest_pause;
}

std::vector<GpuRefusals::Due> GpuRefusals::due(Clock::time_point now) const
{
    std::lock_guard lock(mutex_);
    std::vector<Due> list;
    for (const auto& [key, refusal] : refusals_) {
        if (now >= refusal.until) list.push_back({key, refusal.least_room, is_old(refusal, now)});
    }
    return list;
}

void GpuRefusals::forget(const MirrorKey& key)
{
    std::lock_guard lock(mutex_);
    refusals_.erase(relation_of(key));
}

void GpuRefusals::clear()
{
    std::lock_guard lock(mutex_);
    refusals_.clear();
}

}  // namespace pgwarp
