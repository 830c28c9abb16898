// Indexes that a GPU had no room for. The CPU serves each of them for a while, twice as long after every further
// refusal; then the GPU is asked again, because what took its memory (a build, another index) may be gone. A merge
// makes another generation of an index, which takes about as much: a refusal is of all of them.
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
        MirrorKey key;             // of no generation
        std::uint64_t least_room;  // with less than that the GPU would refuse again
        bool is_old;               // the pause was over for longer than any pause is
    };

    // bytes: what the index took of the GPU, or would take at least. room: what it could have taken, and found too
    // little. While a refusal holds, another changes nothing.
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
