// The sweep: adds pages that no part of the index uses to the free list, and gives trailing ones back to the file
// system. These are pages of the generation before the last merge, and pages that a crash or a failed merge left. A
// session that still reads the old generation detects reused pages by their identities and checksums, and reads the new
// generation.
#pragma once

#include "postgres/storage/linked_pages.h"

namespace pgwarp
{

// The caller keeps VACUUM and merges out. Inserts go on: an insert that adds a page to a log keeps the page before it
// locked until the link is written, so the sweep finds no such page unused. Trailing pages are given back when no other
// session has the index locked: at once, or within some seconds, during which other sessions come first, with
// `patience` or where these pages are most of the file.
void sweep_pages(Relation index, bool patience);

}  // namespace pgwarp
