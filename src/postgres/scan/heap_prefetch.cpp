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

// Where a page of a table was last seen.
struct SeenPage {
    Oid heap;
    BlockNumber block;
    Buffer buffer;
};

// A table of this session, [places], a power of two. No more than what shared buffers hold: what was seen long ago is
// gone from there.
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

// Where a page is in shared buffers, or was; otherwise it is on its way from disk. Never a buffer of a temporary table.
Buffer see_page(Relation heap, BlockNumber block)
{
    SeenPage* place = place_of(heap, block);
    if (is_at(place, heap, block)) return place->buffer;
    const Buffer buffer = PrefetchBuffer(heap, MAIN_FORKNUM, block).recent_buffer;
    if (!BufferIsValid(buffer) || BufferIsLocal(buffer)) return InvalidBuffer;
    *place = {RelationGetRelid(heap), block, buffer};
    return buffer;
}

// Pin a page where it was seen; false when another one is there by now.
bool pin_seen(Relation heap, const SeenPage& seen)
{
#if PG_VERSION_NUM >= 160000
    return ReadRecentBuffer(heap->rd_locator, MAIN_FORKNUM, seen.block, seen.buffer);
#else
    return ReadRecentBuffer(heap->rd_node, MAIN_FORKNUM, seen.block, seen.buffer);
#endif
}

// The lines of a row; of a long one the first, the processor sees by itself what follows.
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
        // Without a pin the page may be another by now: what is read of it only says which memory to bring near.
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
    heap_page_prune_opt(heap, own->xs_cbuf);  // as where a fetch comes to another page by itself
}

}  // namespace pgwarp
