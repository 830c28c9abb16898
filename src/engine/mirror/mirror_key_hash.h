// MirrorKey as a key of hash tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/messages.h"

namespace pgwarp
{

struct MirrorKeyHash {
    std::size_t operator()(const MirrorKey& key) const
    {
        // Generations are random: they alone spread well.
        std::uint64_t hash = key.generation ^ (std::uint64_t{key.relation} << 32 | key.database);
        hash *= 0x9e3779b97f4a7c15ULL;
        return hash ^ (hash >> 32);
    }
};

}  // namespace pgwarp
