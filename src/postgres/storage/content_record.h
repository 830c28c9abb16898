// Writes one WAL record of changes at known offsets. GenericXLogFinish compares pages byte by byte to find the changes,
// which took half the time of an insert. These records have the same form, and the same code replays them.
#pragma once

#include "postgres/storage/page.h"

namespace pgwarp
{

// New bytes at offset `within` of a page's content. The content ends with them.
struct ContentChange {
    Buffer buffer;  // exclusively locked, of the relation's main fork
    uint32 within;
    const void* bytes;
    uint32 length;
};

inline constexpr uint32 most_content_changes = 4;

// Makes these changes, at most most_content_changes, each on another page. After a crash either all or none of them are
// there. WAL-logged if the relation needs it.
void write_contents(Relation index, const ContentChange* changes, uint32 count);

}  // namespace pgwarp
