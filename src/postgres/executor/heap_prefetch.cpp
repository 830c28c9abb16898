#include "postgres/executor/heap_prefetch.h"

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

bool may_prefetch(Relation heap)
{
    return heap->rd_tableam == GetHeapamTableAmRoutine() &&
           get_tablespace_io_concurrency(heap->rd_rel->reltablespace) > 0;
}

void prefetch_pages(Relation heap, const Result* rows, uint32 count, HeapPrefetch* prefetch)
{
    prefetch->rows = rows;
    prefetch->count = Min(count, most_prefetched_rows);
    for (uint32 i = 0; i < prefetch->count; ++i) {
        const Buffer buffer = PrefetchBuffer(heap, MAIN_FORKNUM, rows[i].tid.block).recent_buffer;
        prefetch->buffers[i] = buffer;
        if (!BufferIsValid(buffer)) continue;
        const char* page = static_cast<const char*>(BufferGetBlock(buffer));
        if (!BufferIsLocal(buffer)) __builtin_prefetch(GetBufferDescriptor(static_cast<uint32>(buffer - 1)));
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
        __builtin_prefetch(page + Min(ItemIdGetOffset(&item), BLCKSZ - 1U));
    }
}

}  // namespace pgwarp
