// The three steps of prefetching, and a table of the last known buffers.
#include "postgres/scan/heap_prefetch.h"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/spccache.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 cache_line = 64;
constexpr uint32 most_near_bytes = 1024;  // of a row

// The last known buffer of a page of a table.
struct SeenPage {
    Oid heap;
    BlockNumber block;
    Buffer buffer;
};

// The capacity of this session's table of seen pages; the table has [places], a power of two. More places than shared
// buffers are useless: pages seen long ago are evicted.
constexpr uint32 most_places = 1U << 18;
SeenPage* seen_pages = nullptr;
uint32 places = 0;

void make_places()
{
    places = 1024;
    while (places < most_places && places * 2 <= static_cast<uint32>(NBuffers)) places *= 2;
    seen_pages = static_cast<SeenPage*>(MemoryContextAllocZero(TopMemoryContext, sizeof(SeenPage) * places));
}

SeenPage* place_of(Relation heap, BlockNumber block)
{
    return &seen_pages[(RelationGetRelid(heap) * 31 + block) & (places - 1)];
}

bool is_at(const SeenPage* place, Relation heap, BlockNumber block)
{
    return place->heap == RelationGetRelid(heap) && place->block == block;
}

// The last known buffer of a page. If none is remembered, looks the page up, and starts a read from disk when it isn't
// in shared buffers. Never a buffer of a temporary table.
Buffer see_page(Relation heap, BlockNumber block)
{
    SeenPage* place = place_of(heap, block);
    if (is_at(place, heap, block)) return place->buffer;
    const Buffer buffer = PrefetchBuffer(heap, MAIN_FORKNUM, block).recent_buffer;
    if (!BufferIsValid(buffer) || BufferIsLocal(buffer)) return InvalidBuffer;
    *place = {RelationGetRelid(heap), block, buffer};
    return buffer;
}

// Pin the remembered buffer; false when it holds another page by now.
bool pin_seen(Relation heap, const SeenPage& seen)
{
#if PG_VERSION_NUM >= 160000
    return ReadRecentBuffer(heap->rd_locator, MAIN_FORKNUM, seen.block, seen.buffer);
#else
    return ReadRecentBuffer(heap->rd_node, MAIN_FORKNUM, seen.block, seen.buffer);
#endif
}

// Prefetch the cache lines of a row: the first ones only, since the processor itself prefetches the lines that follow.
void bring_near(const char* page, uint32 offset, uint32 length)
{
    const uint32 end = Min(offset + Min(length, most_near_bytes), uint32{BLCKSZ});
    for (uint32 at = offset & ~(cache_line - 1); at < end; at += cache_line) __builtin_prefetch(page + at);
}

}  // namespace

bool may_prefetch(Relation heap)
{
    return heap->rd_tableam == GetHeapamTableAmRoutine() &&
           get_tablespace_io_concurrency(heap->rd_rel->reltablespace) > 0;
}

void prefetch_pages(Relation heap, const Result* rows, uint32 count, HeapPrefetch* prefetch)
{
    if (seen_pages == nullptr) make_places();
    prefetch->rows = rows;
    prefetch->count = Min(count, most_prefetched_rows);
    for (uint32 i = 0; i < prefetch->count; ++i) {
        const Buffer buffer = see_page(heap, rows[i].tid.block);
        prefetch->buffers[i] = buffer;
        if (!BufferIsValid(buffer)) continue;
        const char* page = static_cast<const char*>(BufferGetBlock(buffer));
        __builtin_prefetch(GetBufferDescriptor(static_cast<uint32>(buffer - 1)));
        __builtin_prefetch(page);
        __builtin_prefetch(page + SizeOfPageHeaderData + sizeof(ItemIdData) * rows[i].tid.offset);
    }
}

void prefetch_rows(const HeapPrefetch& prefetch)
{
    for (uint32 i = 0; i < prefetch.count; ++i) {
        if (!BufferIsValid(prefetch.buffers[i])) continue;
        // The page is not pinned, so the buffer may hold another page by now. Its bytes only choose the
        // addresses to prefetch.
        const char* page = static_cast<const char*>(BufferGetBlock(prefetch.buffers[i]));
        ItemIdData item;
        memcpy(static_cast<void*>(&item),
               page + Min(SizeOfPageHeaderData + sizeof(ItemIdData) * (prefetch.rows[i].tid.offset - 1U),
                          BLCKSZ - sizeof(ItemIdData)),
               sizeof(item));
        bring_near(page, ItemIdGetOffset(&item), ItemIdGetLength(&item));
    }
}

void reuse_page(Relation heap, IndexFetchTableData* fetch, BlockNumber block)
{
    if (seen_pages == nullptr) return;
    SeenPage* seen = place_of(heap, block);
    if (!is_at(seen, heap, block)) return;
    auto* own = reinterpret_cast<IndexFetchHeapData*>(fetch);
    if (BufferIsValid(own->xs_cbuf) && BufferGetBlockNumber(own->xs_cbuf) == block) return;
    if (!pin_seen(heap, *seen)) {
        *seen = {};
        return;
    }
    if (BufferIsValid(own->xs_cbuf)) ReleaseBuffer(own->xs_cbuf);
    own->xs_cbuf = seen->buffer;
    // As a fetch does when it comes to another page.
#if PG_VERSION_NUM >= 190000
    own->xs_blk = block;
    heap_page_prune_opt(heap, own->xs_cbuf, &own->xs_vmbuffer, false);
#else
    heap_page_prune_opt(heap, own->xs_cbuf);
#endif
}

}  // namespace pgwarp
