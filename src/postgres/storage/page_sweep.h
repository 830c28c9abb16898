// The sweep: pages that nothing uses become free extents; trailing ones are given back to the file system. Found are
// those that a merge has just stopped using, and those that a crash or an interrupted merge left behind. Who still
// reads the generation before a merge notices by the pages' identities and checksums, and reads the new one.
#pragma once

#include "postgres/storage/linked_pages.h"

namespace pgwarp
{

// The caller keeps VACUUM and merges out; inserts go on: who adds a page to a log keeps the one before it locked until
// the link is there, so that no page of theirs looks unused. Pages at the end are given back when nobody else has the
// index locked: right now, or with `patience` within some seconds, in which others come and go as they like.
void sweep_pages(Relation index, bool patience);

}  // namespace pgwarp
