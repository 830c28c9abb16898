// Indexes that a GPU had no room for. The CPU serves each of them for a pause, which doubles with every further
// refusal; then the GPU is tried again, because a build or another index may have freed its memory. Generations of an
// index take about the same memory: a refusal holds for all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/mirror/mirror_key_hash.h"
#include "protocol/messages.h"

namespace pgwarp
{

class GpuRefusals
{
public:
    using Clock = std::chrono::steady_clock;
    static constexpr Clock::duration first_pause = std::chrono::minutes(1);
    static constexpr Clock::duration longest_pause = std::chrono::hours(1);

    struct Due {
        MirrorKey key;             // generation 0
        std::uint64_t least_room;  // bytes; with less the GPU would refuse again
        bool is_old;               // the pause ended longer than longest_pause ago
    };

    // bytes: of the index on the GPU, or a lower bound. room: bytes that it could have taken, which were too few. While
    // a refusal holds, another changes nothing.
    void note(const MirrorKey& key, std::uint64_t bytes, std::uint64_t room, Clock::time_point now = Clock::now());
    // Whether the CPU is to serve the index now.
    bool holds(const MirrorKey& key, Clock::time_point now = Clock::now()) const;
    // The refusals whose pause is over.
    std::vector<Due> due(Clock::time_point now = Clock::now()) const;
    void forget(const MirrorKey& key);
    void clear();

private:
    struct Refusal {
        Clock::time_point until;
        Clock::duration pause;
        std::uint64_t least_room;
    };
    static std::uint64_t least_room(std::uint64_t bytes, std::uint64_t room);
    static MirrorKey relation_of(MirrorKey key);
    static bool is_old(const Refusal& refusal, Clock::time_point now);

    mutable std::mutex mutex_;
    std::unordered_map<MirrorKey, Refusal, MirrorKeyHash> refusals_;
};

}  // namespace pgwarp
