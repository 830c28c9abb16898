// Pages of a build's large arrays, whose places are known before anything is written: several processes write them at
// once, past the shared buffers, so that each page is formed once, written once and logged from where it was formed.
//
// Nobody else sees the index yet, and its transaction's end drops it when the server crashes before. So a page may
// reach its file before its WAL record. A batch of pages is written first, its file is named to the checkpointer, then
// the batch is logged: a checkpoint that begins after the record syncs the file, and recovery from an earlier one
// replays the record.
#pragma once

#include "postgres/storage/page.h"

extern "C" {
#include "access/xlogrecord.h"
}

namespace pgwarp
{

inline constexpr uint32 batch_pages = XLR_MAX_BLOCK_ID;  // what one WAL record takes

// How many pages this many bytes of content take.
inline uint64 pages_of_bytes(uint64 bytes)
{
    return (bytes + page_capacity - 1) / page_capacity;
}

// Makes room for `count` pages behind the last one and returns the first of them. They are zero, mostly holes, until
// they are written. Raises ERRCODE_PROGRAM_LIMIT_EXCEEDED when a relation cannot have so many.
BlockNumber reserve_pages(Relation index, ForkNumber fork, uint64 count);

// Forms and writes pages; each process has its own, in the current memory context.
struct PlacedPageWriter;
PlacedPageWriter* open_page_writer(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, bool logged);
// Writes `length` bytes of content, at least one, to the pages from `block` on, the first of which has this place in
// its stream. Every page but the last is filled.
void write_placed_pages(PlacedPageWriter* writer, BlockNumber block, uint32 ordinal, const char* bytes, uint64 length);
void close_page_writer(PlacedPageWriter* writer);

}  // namespace pgwarp
