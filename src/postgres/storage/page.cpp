// Checks, locks and reads pages.
#include "postgres/storage/page.h"

#include "postgres/storage/checksum.h"

extern "C" {
#include "storage/lmgr.h"
#include "storage/smgr.h"
}

namespace pgwarp
{

void init_page(Page page, PageKind kind, uint64 segment_id, uint32 ordinal)
{
    PageInit(page, BLCKSZ, sizeof(PageTrailer));
    PageTrailer* trailer = page_trailer(page);
    trailer->segment_id = segment_id;
    trailer->ordinal = ordinal;
    trailer->next = InvalidBlockNumber;
    trailer->kind = static_cast<uint16>(kind);
    trailer->crc[0] = trailer->crc[1] = 0;
    trailer->page_id = page_id;
}

void seal_page(Page page)
{
    const uint32 crc = bytes_crc(page_content(page), page_content_bytes(page));
    page_trailer(page)->crc[0] = static_cast<uint16>(crc);
    page_trailer(page)->crc[1] = static_cast<uint16>(crc >> 16);
}

bool page_is_sealed(Page page)
{
    const PageTrailer* trailer = page_trailer(page);
    const uint32 stored = trailer->crc[0] | static_cast<uint32>(trailer->crc[1]) << 16;
    return stored == bytes_crc(page_content(page), page_content_bytes(page));
}

bool page_is_sane(Page page)
{
    const PageHeader header = reinterpret_cast<PageHeader>(page);
    return header->pd_special == BLCKSZ - MAXALIGN(sizeof(PageTrailer)) &&
           header->pd_lower >= MAXALIGN(SizeOfPageHeaderData) && header->pd_lower <= header->pd_special &&
           header->pd_upper == header->pd_special && PageGetPageSize(page) == BLCKSZ &&
           page_trailer(page)->page_id == page_id;
}

bool page_is(Page page, PageKind kind, uint64 segment_id, uint32 ordinal)
{
    if (!page_is_sane(page)) return false;
    const PageTrailer* trailer = page_trailer(page);
    return trailer->kind == static_cast<uint16>(kind) && trailer->segment_id == segment_id &&
           trailer->ordinal == ordinal;
}

void check_page(Relation index, Buffer buffer, PageKind kind, uint64 segment_id, uint32 ordinal)
{
    if (!page_is(BufferGetPage(buffer), kind, segment_id, ordinal)) {
        report_corruption(index, BufferGetBlockNumber(buffer), "the page is not the one expected there");
    }
}

bool block_exists(Relation index, BlockNumber block)
{
    const BlockNumber known = RelationGetSmgr(index)->smgr_cached_nblocks[MAIN_FORKNUM];
    if (known != InvalidBlockNumber && block < known) return true;
    return block < RelationGetNumberOfBlocks(index);
}

Buffer try_read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                     BufferAccessStrategy strategy)
{
    if (!block_exists(index, block)) return InvalidBuffer;
    const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
    LockBuffer(buffer, static_cast<BufferLock>(lock_mode));
    if (page_is(BufferGetPage(buffer), kind, segment_id, ordinal)) return buffer;
    UnlockReleaseBuffer(buffer);
    return InvalidBuffer;
}

Buffer read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                 BufferAccessStrategy strategy)
{
    if (!block_exists(index, block)) report_corruption(index, block, "the block lies past the end of the index");
    const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
    LockBuffer(buffer, static_cast<BufferLock>(lock_mode));
    check_page(index, buffer, kind, segment_id, ordinal);
    return buffer;
}

namespace
{

constexpr uint32 recent_indexes = 4096;
constexpr uint32 recent_blocks = 16;     // of each index: one cache line
constexpr uint32 reads_per_lookup = 16;  // only PostgreSQL's own look-up raises the usage count of a buffer

// The last known buffers of blocks, by index oid. ReadRecentBuffer checks whether a buffer still holds the block.
Buffer recent_buffers[recent_indexes][recent_blocks];

Buffer* recent_place(Relation index, BlockNumber block)
{
    return &recent_buffers[RelationGetRelid(index) % recent_indexes][block % recent_blocks];
}

bool read_recent_buffer(Relation index, BlockNumber block, Buffer buffer)
{
    static uint32 reads = 0;
    if (buffer == InvalidBuffer || ++reads % reads_per_lookup == 0) return false;
#if PG_VERSION_NUM >= 160000
    return ReadRecentBuffer(index->rd_locator, MAIN_FORKNUM, block, buffer);
#else
    return ReadRecentBuffer(index->rd_node, MAIN_FORKNUM, block, buffer);
#endif
}

}  // namespace

Buffer read_frequent_page(Relation index, BlockNumber block, int lock_mode)
{
    Buffer* place = RelationUsesLocalBuffers(index) ? nullptr : recent_place(index, block);
    Buffer buffer = place != nullptr ? *place : InvalidBuffer;
    if (!read_recent_buffer(index, block, buffer)) {
        if (!block_exists(index, block)) report_corruption(index, block, "the block lies past the end of the index");
        buffer = ReadBuffer(index, block);
        if (place != nullptr) *place = buffer;
    }
    LockBuffer(buffer, static_cast<BufferLock>(lock_mode));
    return buffer;
}

BufferAccessStrategy bulk_read_strategy(uint64 pages)
{
    return pages > static_cast<uint64>(NBuffers) / 4 ? GetAccessStrategy(BAS_BULKREAD) : nullptr;
}

Buffer extend_index(Relation index, ForkNumber fork)
{
#if PG_VERSION_NUM >= 160000
    return ExtendBufferedRel(BMR_REL(index), fork, nullptr, EB_LOCK_FIRST);
#else
    const bool lock = !RELATION_IS_LOCAL(index);
    if (lock) LockRelationForExtension(index, ExclusiveLock);
    const Buffer buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL, nullptr);
    LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
    if (lock) UnlockRelationForExtension(index, ExclusiveLock);
    return buffer;
#endif
}

uint64 random_number64()
{
    uint64 number = 0;
    while (number == 0) {
        if (!pg_strong_random(&number, sizeof(number))) {
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
        }
    }
    return number;
}

void report_corruption(Relation index, BlockNumber block, const char* detail)
{
    ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                    errmsg("index \"%s\" is corrupted at block %u", RelationGetRelationName(index), block),
                    errdetail("%s", detail), errhint("Please REINDEX it.")));
    pg_unreachable();
}

}  // namespace pgwarp
