// Takes pages off the free list or extends the relation.
#include "postgres/storage/page_source.h"

#include "postgres/storage/fault_point.h"

extern "C" {
#include "access/xloginsert.h"
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 pages_at_once = 64;  // taken off the free list together

// The buffer of the next page, pinned and exclusively locked, to be overwritten.
Buffer next_page(PageSource* source)
{
    if (source->meta == nullptr) return extend_index(source->index, source->fork);
    if (source->taken.count == 0) source->taken = take_free_extent(source->index, *source->meta, pages_at_once);
    if (source->taken.count == 0) return extend_index(source->index, source->fork);
    const Buffer buffer = open_free_page(source->index, source->taken.start);
    source->taken.start++;
    source->taken.count--;
    return buffer;
}

}  // namespace

PageSource build_pages(Relation index, ForkNumber fork)
{
    return {index, fork, nullptr, {InvalidBlockNumber, 0}};
}

PageSource merge_pages(Relation index, const MetaPage* meta)
{
    return {index, MAIN_FORKNUM, meta, {InvalidBlockNumber, 0}};
}

BlockNumber write_page(PageSource* source, const PageImage& image)
{
    CHECK_FOR_INTERRUPTS();
    const Buffer buffer = next_page(source);
    const BlockNumber block = BufferGetBlockNumber(buffer);
    const bool logged = source->meta != nullptr && RelationNeedsWAL(source->index);
    if (logged) fault_point("merge: before a page");
    START_CRIT_SECTION();
    memcpy(BufferGetPage(buffer), image.bytes, BLCKSZ);
    MarkBufferDirty(buffer);
    if (logged) log_newpage_buffer(buffer, true);
    END_CRIT_SECTION();
    if (logged) fault_point("merge: page written");
    UnlockReleaseBuffer(buffer);
    return block;
}

void close_pages(PageSource* source)
{
    if (source->taken.count > 0) add_free_extents(source->index, *source->meta, &source->taken, 1);
    source->taken.count = 0;
}

}  // namespace pgwarp
