// Reads and changes the page that lists free extents.
#include "postgres/storage/free_pages.h"

#include "postgres/storage/fault_point.h"

namespace pgwarp
{

namespace
{

static_assert(most_free_extents * sizeof(Extent) <= page_capacity);

// The list's page has the index's log identity as its segment_id.
uint64 list_segment_id(const MetaPage& meta)
{
    return meta.log_identity;
}

Extent* listed(Page page)
{
    return reinterpret_cast<Extent*>(page_content(page));
}

uint32 listed_count(Page page)
{
    return page_content_bytes(page) / sizeof(Extent);
}

void put_list(Page page, const Extent* extents, uint32 count)
{
    memcpy(page_content(page), extents, count * sizeof(Extent));
    set_page_content_bytes(page, count * sizeof(Extent));
    seal_page(page);
}

Buffer lock_list(Relation index, const MetaPage& meta, int lock_mode)
{
    const Buffer buffer = read_page(index, meta.free_pages, PageKind::free_pages, list_segment_id(meta), 0, lock_mode);
    Page page = BufferGetPage(buffer);
    if (!page_is_sealed(page) || listed_count(page) > most_free_extents) {
        report_corruption(index, meta.free_pages, "the checksum of the list of free pages does not match");
    }
    return buffer;
}

void copy_list(Page page, FreeList* list)
{
    list->count = listed_count(page);
    memcpy(list->extents, listed(page), list->count * sizeof(Extent));
}

// Replace the list in one WAL record, and release its page.
void write_list(Relation index, Buffer buffer, const Extent* extents, uint32 count)
{
    GenericXLogState* state = GenericXLogStart(index);
    put_list(GenericXLogRegisterBuffer(state, buffer, 0), extents, count);
    fault_point("free pages: before the list");
    GenericXLogFinish(state);
    fault_point("free pages: list written");
    UnlockReleaseBuffer(buffer);
}

// Take pages off the front of the first extent.
void take_front(FreeList* list, uint32 pages)
{
    list->extents[0].start += pages;
    list->extents[0].count -= pages;
    if (list->extents[0].count > 0) return;
    list->count--;
    memmove(list->extents, list->extents + 1, list->count * sizeof(Extent));
}

int by_size(const void* a, const void* b)
{
    const uint32 left = static_cast<const Extent*>(a)->count;
    const uint32 right = static_cast<const Extent*>(b)->count;
    return left == right ? 0 : left > right ? -1 : 1;
}

int by_block(const void* a, const void* b)
{
    const BlockNumber left = static_cast<const Extent*>(a)->start;
    const BlockNumber right = static_cast<const Extent*>(b)->start;
    return left == right ? 0 : left < right ? -1 : 1;
}

// Merge two lists in order of blocks into `out`, joining neighbours. Returns the number of extents.
uint32 unite(const FreeList& list, const Extent* more, uint32 more_count, Extent* out)
{
    uint32 count = 0;
    uint32 at = 0;
    for (uint32 i = 0; at < list.count || i < more_count;) {
        const bool first = i == more_count || (at < list.count && list.extents[at].start < more[i].start);
        const Extent next = first ? list.extents[at++] : more[i++];
        if (count > 0 && out[count - 1].start + out[count - 1].count == next.start) {
            out[count - 1].count += next.count;
        } else {
            out[count++] = next;
        }
    }
    return count;
}

}  // namespace

BlockNumber create_free_list(Relation index, ForkNumber fork, uint64 log_identity)
{
    const Buffer buffer = extend_index(index, fork);
    init_page(BufferGetPage(buffer), PageKind::free_pages, log_identity, 0);
    put_list(BufferGetPage(buffer), nullptr, 0);
    MarkBufferDirty(buffer);
    const BlockNumber block = BufferGetBlockNumber(buffer);
    UnlockReleaseBuffer(buffer);
    return block;
}

void read_free_list(Relation index, const MetaPage& meta, FreeList* list)
{
    const Buffer buffer = lock_list(index, meta, BUFFER_LOCK_SHARE);
    copy_list(BufferGetPage(buffer), list);
    UnlockReleaseBuffer(buffer);
}

void add_free_extents(Relation index, const MetaPage& meta, const Extent* extents, uint32 count)
{
    if (count == 0) return;
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    auto* all = static_cast<Extent*>(palloc(sizeof(Extent) * (most_free_extents + static_cast<Size>(count))));
    const Buffer buffer = lock_list(index, meta, BUFFER_LOCK_EXCLUSIVE);
    copy_list(BufferGetPage(buffer), list);
    uint32 total = unite(*list, extents, count, all);
    if (total > most_free_extents) {
        qsort(all, total, sizeof(Extent), by_size);
        total = most_free_extents;
        qsort(all, total, sizeof(Extent), by_block);
    }
    write_list(index, buffer, all, total);
    pfree(all);
    pfree(list);
}

BlockNumber remove_free_tail(Relation index, const MetaPage& meta, BlockNumber blocks)
{
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    const Buffer buffer = lock_list(index, meta, BUFFER_LOCK_EXCLUSIVE);
    copy_list(BufferGetPage(buffer), list);
    const Extent last = list->count > 0 ? list->extents[list->count - 1] : Extent{InvalidBlockNumber, 0};
    if (list->count == 0 || last.start + last.count != blocks) {
        UnlockReleaseBuffer(buffer);
        pfree(list);
        return blocks;
    }
    write_list(index, buffer, list->extents, list->count - 1);
    pfree(list);
    return last.start;
}

uint64 count_inner_free_pages(Relation index, const MetaPage& meta, BlockNumber blocks)
{
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    read_free_list(index, meta, list);
    uint64 pages = 0;
    for (uint32 i = 0; i < list->count; ++i) {
        const Extent& extent = list->extents[i];
        if (extent.start + extent.count < blocks) pages += extent.count;
    }
    pfree(list);
    return pages;
}

Extent take_free_extent(Relation index, const MetaPage& meta, uint32 wanted)
{
    Extent taken = {InvalidBlockNumber, 0};
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    const Buffer buffer = lock_list(index, meta, BUFFER_LOCK_EXCLUSIVE);
    copy_list(BufferGetPage(buffer), list);
    if (list->count > 0) {
        taken = {list->extents[0].start, Min(wanted, list->extents[0].count)};
        take_front(list, taken.count);
        write_list(index, buffer, list->extents, list->count);
    } else {
        UnlockReleaseBuffer(buffer);
    }
    pfree(list);
    return taken;
}

Buffer lock_free_list(Relation index, const MetaPage& meta, BlockNumber* block)
{
    // The list is usually empty, so a share lock suffices to see that without queueing.
    const Buffer peeked = lock_list(index, meta, BUFFER_LOCK_SHARE);
    const bool empty = listed_count(BufferGetPage(peeked)) == 0;
    UnlockReleaseBuffer(peeked);
    if (empty) return InvalidBuffer;
    const Buffer buffer = lock_list(index, meta, BUFFER_LOCK_EXCLUSIVE);
    Page page = BufferGetPage(buffer);
    if (listed_count(page) == 0) {
        UnlockReleaseBuffer(buffer);
        return InvalidBuffer;
    }
    *block = listed(page)[0].start;
    return buffer;
}

void take_locked_page(Page page)
{
    Extent* extents = listed(page);
    uint32 count = listed_count(page);
    extents[0].start++;
    extents[0].count--;
    if (extents[0].count == 0) {
        count--;
        memmove(extents, extents + 1, count * sizeof(Extent));
    }
    set_page_content_bytes(page, count * sizeof(Extent));
    seal_page(page);
}

Buffer open_free_page(Relation index, BlockNumber block)
{
    if (!block_exists(index, block)) report_corruption(index, block, "a free page lies past the end of the index");
    return ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, nullptr);
}

}  // namespace pgwarp
