// Writes pages of a build's large arrays, whose blocks are known in advance. Several processes write them at the same
// time, past the shared buffers, so each page is formed once, written once and logged from the same memory.
//
// No other session sees the index yet, and after a crash the build's transaction is aborted, which drops it. Therefore
// a page may reach its file before its WAL record. A batch of pages is written first, then its file is registered with
// the checkpointer, then the batch is logged: a checkpoint that begins after the record syncs the file, and recovery
// from an earlier checkpoint replays the record.
#pragma once

#include "postgres/storage/page.h"

extern "C" {
#include "access/xlogrecord.h"
}

namespace pgwarp
{

inline constexpr uint32 batch_pages = XLR_MAX_BLOCK_ID;  // the most pages of one WAL record

// The number of pages for this many bytes of content.
inline uint64 pages_of_bytes(uint64 bytes)
{
    return (bytes + page_capacity - 1) / page_capacity;
}

// Reserves `count` pages at the end of the fork, and returns the first block. Until they are written they are zero,
// mostly holes in the file. Raises ERRCODE_PROGRAM_LIMIT_EXCEEDED when the relation would become too large.
BlockNumber reserve_pages(Relation index, ForkNumber fork, uint64 count);

// Forms and writes pages. Each process has its own writer, in its current memory context.
struct PlacedPageWriter;
// A writer of pages with this kind and segment_id. `logged`: the pages need WAL.
PlacedPageWriter* open_page_writer(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, bool logged);
// Writes `length` bytes of content, at least one, to the pages from `block` on. `ordinal` is the number of the first
// page in its stream. Every page but the last is filled.
void write_placed_pages(PlacedPageWriter* writer, BlockNumber block, uint32 ordinal, const char* bytes, uint64 length);
void close_page_writer(PlacedPageWriter* writer);

}  // namespace pgwarp
