// pgwarp_check(index, heap): verifies the integrity of an index, in the manner of amcheck.
#pragma once

#include "postgres/storage/linked_pages.h"
#include "postgres/storage/tombstones.h"

namespace pgwarp
{

// The state of one check. Checks raise ERRCODE_INDEX_CORRUPTED for the first fault.
struct IndexCheck {
    Relation index;
    MetaPage meta;
    const Directory* directory;
    uint64 ends[delta_log_count];
    uint64 unplaced_end;
    RowCounts counts;
    PageMap pages;
};

// check_structure.cpp: checks metapage, directory, arrays, tombstones, logs and pages, with all checksums. False when
// the index changed to another generation meanwhile (on a standby, where nothing keeps merges out).
bool check_structure(IndexCheck* check);

// check_heap.cpp: checks that no entry points past the heap, that no tid occurs twice, and that every row that the
// snapshot sees is in the index, placed or unplaced as its value demands, and has the codes of its filter columns. The
// snapshot must be older than check_structure(). False as above.
bool check_heap(IndexCheck* check, Relation table, Snapshot snapshot);

}  // namespace pgwarp
