// Follows the directory, the arrays, the free list and the logs.
#include "postgres/storage/linked_pages.h"

#include "postgres/storage/delta_pages.h"

namespace pgwarp
{

namespace
{

struct Mapping {
    Relation index;
    const MetaPage* meta;
    const Directory* directory;
    bool strict;
    PageMap map;
};

void claim(Mapping* mapping, BlockNumber block, PageOwner owner)
{
    if (block >= mapping->map.blocks) {
        // An insert may have extended a log meanwhile.
        if (owner == PageOwner::log || !mapping->strict) return;
        report_corruption(mapping->index, block, "a page in use lies past the end of the index");
    }
    PageOwner* const present = &mapping->map.owners[block];
    // An insert took the page off the free list for a log while the map was made.
    const bool taken = (*present == PageOwner::log && owner == PageOwner::free) ||
                       (*present == PageOwner::free && owner == PageOwner::log);
    if (*present != PageOwner::nobody && !taken) {
        report_corruption(mapping->index, block, "a page is used twice");
    }
    *present = taken ? PageOwner::log : owner;
}

void claim_extents(Mapping* mapping, const Extent* extents, uint32 count, PageOwner owner)
{
    for (uint32 i = 0; i < count; ++i) {
        for (uint32 page = 0; page < extents[i].count; ++page) claim(mapping, extents[i].start + page, owner);
    }
}

void claim_directory(Mapping* mapping)
{
    BlockNumber block = mapping->meta->directory_block;
    for (uint32 ordinal = 0; block != InvalidBlockNumber; ++ordinal) {
        CHECK_FOR_INTERRUPTS();
        claim(mapping, block, PageOwner::directory);
        const Buffer buffer = try_read_page(mapping->index, block, PageKind::directory, mapping->meta->generation,
                                            ordinal, BUFFER_LOCK_SHARE);
        if (!BufferIsValid(buffer)) {
            unexpected_log_page(mapping->index, *mapping->meta, block);
            return;
        }
        block = page_trailer(BufferGetPage(buffer))->next;
        UnlockReleaseBuffer(buffer);
    }
}

// A linked stream, from its start. An insert that adds a page keeps the page before it locked until the link is
// written, so the map misses none.
void claim_stream(Mapping* mapping, uint32 log, PageKind kind, StreamStart start)
{
    const uint64 segment_id = log_segment_id(*mapping->meta, log);
    BlockNumber block = start.block;
    for (uint32 ordinal = start.ordinal; block != InvalidBlockNumber; ++ordinal) {
        CHECK_FOR_INTERRUPTS();
        claim(mapping, block, PageOwner::log);
        const Buffer buffer = try_read_page(mapping->index, block, kind, segment_id, ordinal, BUFFER_LOCK_SHARE);
        if (!BufferIsValid(buffer)) {
            unexpected_log_page(mapping->index, *mapping->meta, block);
            return;
        }
        block = page_trailer(BufferGetPage(buffer))->next;
        UnlockReleaseBuffer(buffer);
    }
}

void claim_logs(Mapping* mapping)
{
    for (uint32 log = 0; log < count_logs(*mapping->meta); ++log) {
        const LogStart& start = mapping->meta->logs[log];
        claim(mapping, start.head, PageOwner::log);
        const LogHead head = read_log_head(mapping->index, *mapping->meta, log);
        claim(mapping, head.samples, PageOwner::log);
        claim_stream(mapping, log, PageKind::log_entries, first_page(head.entries, start.entries));
        claim_stream(mapping, log, PageKind::log_values, first_page(head.values, start.values));
    }
}

void claim_arrays(Mapping* mapping)
{
    const Directory& directory = *mapping->directory;
    for (uint32 i = 0; i < directory.array_count; ++i) {
        claim_extents(mapping, directory.arrays[i].extents, directory.arrays[i].extent_count, PageOwner::array);
    }
    const StoredArray* const others[] = {&directory.included, &directory.included_at, &directory.unplaced.keys,
                                         &directory.unplaced.attributes};
    for (const StoredArray* array : others) {
        claim_extents(mapping, array->extents, array->extent_count, PageOwner::array);
    }
    const StoredArray* const bitmaps[] = {&directory.tombstones, &directory.unplaced.tombstones};
    for (const StoredArray* bitmap : bitmaps) {
        claim_extents(mapping, bitmap->extents, bitmap->extent_count, PageOwner::tombstones);
    }
}

void claim_free(Mapping* mapping)
{
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    read_free_list(mapping->index, *mapping->meta, list);
    claim_extents(mapping, list->extents, list->count, PageOwner::free);
    pfree(list);
}

}  // namespace

PageMap map_pages(Relation index, const MetaPage& meta, const Directory& directory, bool strict)
{
    Mapping mapping = {index, &meta, &directory, strict, {0, nullptr}};
    mapping.map.blocks = RelationGetNumberOfBlocks(index);
    mapping.map.owners = static_cast<PageOwner*>(MemoryContextAllocExtended(
        CurrentMemoryContext, Max(mapping.map.blocks, BlockNumber{1}), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    claim(&mapping, metapage_block, PageOwner::metapage);
    claim(&mapping, meta.free_pages, PageOwner::free_list);
    claim_directory(&mapping);
    claim_arrays(&mapping);
    // Free pages are mapped before logs, so a page that an insert takes in between is mapped twice rather than
    // missed.
    claim_free(&mapping);
    claim_logs(&mapping);
    return mapping.map;
}

uint64 count_pages(const PageMap& map, PageOwner owner)
{
    uint64 count = 0;
    for (BlockNumber block = 0; block < map.blocks; ++block) count += map.owners[block] == owner ? 1 : 0;
    return count;
}

}  // namespace pgwarp
