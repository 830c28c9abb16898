// Brings heap rows near before an index scan fetches them: pages from disk, and rows in shared buffers into the
// processor's caches. Where their pages were seen is remembered for the fetch. Only hints; nothing is pinned or locked
// before reuse_page().
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/messages.h"

extern "C" {
#include "access/relscan.h"
#include "storage/bufmgr.h"
}

namespace pgwarp
{

inline constexpr uint32 most_prefetched_rows = 256;

// The rows of one search that will be fetched soon.
struct HeapPrefetch {
    const Result* rows;
    uint32 count;
    Buffer buffers[most_prefetched_rows];  // where their pages were last seen, or InvalidBuffer
};

// Whether hints for this table are any use: effective_io_concurrency allows them, and its rows are in pages.
bool may_prefetch(Relation heap);

// First step: has the pages read, or their line pointers brought near. At most most_prefetched_rows.
void prefetch_pages(Relation heap, const Result* rows, uint32 count, HeapPrefetch* prefetch);
// Second step, some time later: the rows themselves.
void prefetch_rows(const HeapPrefetch& prefetch);
// Third step, before a row is fetched: `fetch` takes the row's page from where it was seen, which saves looking it up
// among all buffers, and prunes it as a fetch would. Nothing changes when it was not seen, or is no longer there. The
// heap is one that may_prefetch() accepts, or was never prefetched.
void reuse_page(Relation heap, IndexFetchTableData* fetch, BlockNumber block);

}  // namespace pgwarp
