// An unplaced row: a row without a place in any order by distance. It is NULL, or its distance to every query is not a
// number (a zero vector under cosine).
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// Stored on disk: never renumber. The order is that in which PostgreSQL sorts distances.
enum class UnplacedKind : uint8 { not_a_number = 0, null = 1 };

struct UnplacedRow {
    Tid tid;
    UnplacedKind kind;
    const uint64* attributes;  // in an index with attributes; else not looked at
};

// The stored form of address and kind: offset, block and kind, from the lowest bit up. Keys ascend by kind, then by
// heap address.
inline uint64 unplaced_key(const UnplacedRow& row)
{
    return static_cast<uint64>(row.kind) << 48 | static_cast<uint64>(row.tid.block) << 16 | row.tid.offset;
}

inline UnplacedRow unplaced_row(uint64 key)
{
    return {
        {static_cast<uint32>(key >> 16), static_cast<uint16>(key), 0}, static_cast<UnplacedKind>(key >> 48), nullptr};
}

}  // namespace pgwarp
