// One WAL record of changes whose places are known. GenericXLogFinish finds out what changed by comparing the pages
// byte by byte, which was half of what an insert costs; these records have the same form and are replayed by the same
// code.
#pragma once

#include "postgres/storage/page.h"

namespace pgwarp
{

// Bytes that end the content of a page from now on: at `within` of it, with nothing behind them.
struct ContentChange {
    Buffer buffer;  // exclusively locked, of the relation's main fork
    uint32 within;
    const void* bytes;
    uint32 length;
};

inline constexpr uint32 most_content_changes = 4;

// Makes these changes, each to another page, at most most_content_changes: all of them or, after a crash, none.
// WAL-logged when the relation needs it.
void write_contents(Relation index, const ContentChange* changes, uint32 count);

}  // namespace pgwarp
