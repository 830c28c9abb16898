// Prefetches heap rows before an index scan fetches them: pages from disk, and rows in shared buffers into the
// processor's caches. The buffers of the pages are remembered for the fetch. All of these are hints: no page is pinned
// or locked before reuse_page().
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

// The rows of one search that the scan will fetch soon.
struct HeapPrefetch {
    const Result* rows;
    uint32 count;
    Buffer buffers[most_prefetched_rows];  // the last known buffers of their pages, or InvalidBuffer
};

// Whether prefetching helps for this table: effective_io_concurrency allows it, and the table is a heap.
bool may_prefetch(Relation heap);

// First step: starts reads of the rows' pages, or prefetches the line pointers of pages in shared buffers. Takes the
// first most_prefetched_rows rows.
void prefetch_pages(Relation heap, const Result* rows, uint32 count, HeapPrefetch* prefetch);
// Second step, some time later: prefetches the rows themselves.
void prefetch_rows(const HeapPrefetch& prefetch);
// Third step, before a row is fetched: makes the remembered buffer the current one of `fetch`, which saves a look-up in
// the buffer table, and prunes the page as a fetch would. Does nothing when the page was not seen or its buffer has
// another page by now. `heap` is accepted by may_prefetch(), or none of its rows was prefetched.
void reuse_page(Relation heap, IndexFetchTableData* fetch, BlockNumber block);

}  // namespace pgwarp
