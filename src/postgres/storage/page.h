// The layout of every page of an index relation: PostgreSQL's page header, content, and a trailer in the special area.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "storage/bufpage.h"
}

namespace pgwarp
{

inline constexpr BlockNumber metapage_block = 0;
inline constexpr uint16 page_id = 0xF9A7;

// Stored on disk: never renumber.
enum class PageKind : uint16 {
    meta = 1,
    directory = 2,
    array = 3,
    log_head = 4,
    log_entries = 5,
    log_values = 6,
    tombstones = 7,
    free_pages = 8
};

// The special area. segment_id is a random number of the stream's segment (for logs: the index's log identity), by
// which a reader recognises that a page was recycled.
struct PageTrailer {
    uint64 segment_id;
    uint32 ordinal;    // number of the page in its stream
    BlockNumber next;  // next page of a linked stream; InvalidBlockNumber at its end and in extents
    uint16 kind;
    uint16 crc[2];  // crc32c of the content, low half first, of tombstones and free extents; else 0
    uint16 page_id;
};
static_assert(sizeof(PageTrailer) == 24);

inline constexpr uint32 page_capacity = BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(PageTrailer));

inline PageTrailer* page_trailer(Page page)
{
    return reinterpret_cast<PageTrailer*>(PageGetSpecialPointer(page));
}
inline char* page_content(Page page)
{
    return PageGetContents(page);
}
// Bytes of content in use, from pd_lower, so that generic WAL logs them.
inline uint32 page_content_bytes(Page page)
{
    return reinterpret_cast<PageHeader>(page)->pd_lower - MAXALIGN(SizeOfPageHeaderData);
}
inline void set_page_content_bytes(Page page, uint32 bytes)
{
    reinterpret_cast<PageHeader>(page)->pd_lower = static_cast<LocationIndex>(MAXALIGN(SizeOfPageHeaderData) + bytes);
}

// Whether the page has this layout: lengths within bounds and the page id of pgwarp. The other functions on content and
// trailer require that.
bool page_is_sane(Page page);

// seal_page stores the crc of the content in the trailer, and page_is_sealed checks it. For pages of tombstones and
// free pages.
void seal_page(Page page);
bool page_is_sealed(Page page);

// Initialises a page with this trailer and no content.
void init_page(Page page, PageKind kind, uint64 segment_id, uint32 ordinal);

// Raises ERRCODE_INDEX_CORRUPTED (with a REINDEX hint) unless the page is sane and has this identity.
void check_page(Relation index, Buffer buffer, PageKind kind, uint64 segment_id, uint32 ordinal);

// Whether the relation has this block. Uses the cached size if that is enough.
bool block_exists(Relation index, BlockNumber block);

// The page of a block, pinned and locked, if it has this identity; else InvalidBuffer.
Buffer try_read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                     BufferAccessStrategy strategy = nullptr);

// Reads a block, locks it (BUFFER_LOCK_SHARE or BUFFER_LOCK_EXCLUSIVE) and checks its identity.
Buffer read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                 BufferAccessStrategy strategy = nullptr);

// Reads and locks a page that every search reads. The buffer is remembered, which saves look-ups. The caller checks the
// page.
Buffer read_frequent_page(Relation index, BlockNumber block, int lock_mode);

// A ring-buffer strategy for reading this many consecutive pages without evicting the buffer pool; nullptr when they
// are few.
BufferAccessStrategy bulk_read_strategy(uint64 pages);

// Whether the page is sane and has this identity, for readers that retry when a page was recycled.
bool page_is(Page page, PageKind kind, uint64 segment_id, uint32 ordinal);

// Extends the relation by one page. Returns it pinned, exclusively locked and uninitialised.
Buffer extend_index(Relation index, ForkNumber fork);

// A random 64-bit number for generations and segments, never 0.
uint64 random_number64();

// Raises ERRCODE_INDEX_CORRUPTED with the block, the detail and a REINDEX hint.
[[noreturn]] void report_corruption(Relation index, BlockNumber block, const char* detail);

}  // namespace pgwarp
