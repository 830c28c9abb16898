// Free extents: pages that no part of the index uses. One page lists them. Sweeps add to the list, and merges and
// inserts take pages from it before they extend the relation.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// A run of consecutive pages.
struct Extent {
    BlockNumber start;
    uint32 count;
};

// The number of extents that fit in the page. A sweep drops the smallest of more; a later sweep finds these again.
inline constexpr uint32 most_free_extents = 1000;

// Extents in order of blocks; adjacent ones are joined.
struct FreeList {
    uint32 count;
    Extent extents[most_free_extents];
};

// Creates the empty list's page at build, and returns its block. log_identity is the metapage's.
BlockNumber create_free_list(Relation index, ForkNumber fork, uint64 log_identity);

// Copies the list out of its page. Raises ERRCODE_INDEX_CORRUPTED when the page is altered.
void read_free_list(Relation index, const MetaPage& meta, FreeList* list);

// The number of pages in the list that are not at the end of a file of `blocks` pages.
uint64 count_inner_free_pages(Relation index, const MetaPage& meta, BlockNumber blocks);

// Adds extents, in order of blocks, that are not in the list yet. Only one process may sweep at a time.
void add_free_extents(Relation index, const MetaPage& meta, const Extent* extents, uint32 count);

// Removes the extent that ends with the relation's last block, and returns its start; `blocks` when there is none. The
// caller holds an exclusive lock on the index.
BlockNumber remove_free_tail(Relation index, const MetaPage& meta, BlockNumber blocks);

// Takes at most `wanted` pages off the list; {InvalidBlockNumber, 0} when it is empty.
Extent take_free_extent(Relation index, const MetaPage& meta, uint32 wanted);

// For a page that the caller links in its own WAL record: returns the list's page, exclusively locked, and the block to
// take; InvalidBuffer when the list is empty. take_locked_page() then takes the block off the page as registered in the
// record.
Buffer lock_free_list(Relation index, const MetaPage& meta, BlockNumber* block);
void take_locked_page(Page page);

// The buffer of a taken block, pinned and exclusively locked. The caller must overwrite its content.
Buffer open_free_page(Relation index, BlockNumber block);

}  // namespace pgwarp
