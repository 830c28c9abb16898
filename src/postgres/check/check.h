// pgwarp_check(index, heap): whether an index is whole, in the manner of amcheck.
#pragma once

#include "postgres/storage/linked_pages.h"
#include "postgres/storage/tombstones.h"

namespace pgwarp
{

// One check. Raises ERRCODE_INDEX_CORRUPTED for the first thing that is wrong.
struct IndexCheck {
    Relation index;
    MetaPage meta;
    const Directory* directory;
    uint64 ends[delta_log_count];
    uint64 unplaced_end;
    RowCounts counts;
    PageMap pages;
};

// check_structure.cpp: metapage, directory, arrays, tombstones, logs and pages, with all checksums. False when the
// index changed to another generation meanwhile (on a standby, where nothing keeps merges out).
bool check_structure(IndexCheck* check);

// check_heap.cpp: no entry points past the heap or stands there twice, and every row that a snapshot sees is in the
// index, placed or unplaced as its value says. The snapshot was taken before the structure was checked. False as above.
bool check_heap(IndexCheck* check, Relation table, Snapshot snapshot);

}  // namespace pgwarp
