// Layout of every page of an index relation: PostgreSQL's page header, content, and our trailer in the special area.
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

// The special area. segment_id is a random number of the stream's segment (for logs: of the index's generation), so
// that a reader knows whether a page is still the one it came for.
struct PageTrailer {
    uint64 segment_id;
    uint32 ordinal;    // place of the page in its stream
    BlockNumber next;  // next page of a linked stream; InvalidBlockNumber at its end and in extents
    uint16 kind;
    uint16 crc[2];  // tombstones: crc32c of the content, low half first (bits change in place); else 0
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
// Bytes of content in use; kept in pd_lower, so that generic WAL logs them.
inline uint32 page_content_bytes(Page page)
{
    return reinterpret_cast<PageHeader>(page)->pd_lower - MAXALIGN(SizeOfPageHeaderData);
}
inline void set_page_content_bytes(Page page, uint32 bytes)
{
    reinterpret_cast<PageHeader>(page)->pd_lower = static_cast<LocationIndex>(MAXALIGN(SizeOfPageHeaderData) + bytes);
}

// Whether the page has our layout: lengths within bounds, our page id. Other functions on content and trailer need
// that.
bool page_is_sane(Page page);

// Sets and checks the crc of the content in the trailer, for pages of tombstones.
void seal_page(Page page);
bool page_is_sealed(Page page);

// Initialises a page with an empty content and this trailer.
void init_page(Page page, PageKind kind, uint64 segment_id, uint32 ordinal);

// Raises ERRCODE_INDEX_CORRUPTED (with a REINDEX hint) unless the page is sane and the one expected.
void check_page(Relation index, Buffer buffer, PageKind kind, uint64 segment_id, uint32 ordinal);

// Whether the relation has this block (by the size known to the backend where that is enough).
bool block_exists(Relation index, BlockNumber block);

// The page of a block, pinned and locked, when it is the one expected; InvalidBuffer when it is not (any more).
Buffer try_read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                     BufferAccessStrategy strategy = nullptr);

// Reads a block, locks it (BUFFER_LOCK_SHARE or BUFFER_LOCK_EXCLUSIVE) and checks that it is the page expected.
Buffer read_page(Relation index, BlockNumber block, PageKind kind, uint64 segment_id, uint32 ordinal, int lock_mode,
                 BufferAccessStrategy strategy = nullptr);

// The same for a page that every search reads, found by where it was found last. Its kind is left to the caller to
// check.
Buffer read_frequent_page(Relation index, BlockNumber block, int lock_mode);

// A strategy for reading this many pages in a row that spares the buffer pool; nullptr when they are few.
BufferAccessStrategy bulk_read_strategy(uint64 pages);

// check_page as a question, for loaders that take a recycled page as a retry.
bool page_is(Page page, PageKind kind, uint64 segment_id, uint32 ordinal);

// Extends the relation by one page and returns it pinned and exclusively locked, uninitialised.
Buffer extend_index(Relation index, ForkNumber fork);

// A random 64-bit number for generations and segments, never 0.
uint64 random_number64();

[[noreturn]] void report_corruption(Relation index, BlockNumber block, const char* detail);

}  // namespace pgwarp
