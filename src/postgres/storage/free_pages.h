// Free extents: pages that nothing of the index needs any more. One page lists them; a sweep adds to it, and whoever
// needs a page takes it from there before the relation is extended.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Pages in a row.
struct Extent {
    BlockNumber start;
    uint32 count;
};

// As many as fit; smaller ones are left for a later sweep to find again.
inline constexpr uint32 most_free_extents = 1000;

// Extents in order of blocks, none beside another.
struct FreeList {
    uint32 count;
    Extent extents[most_free_extents];
};

// Creates the page at build, empty; returns its block. log_identity: of the metapage.
BlockNumber create_free_list(Relation index, ForkNumber fork, uint64 log_identity);

void read_free_list(Relation index, const MetaPage& meta, FreeList* list);

// Pages in the list.
uint64 count_free_pages(Relation index, const MetaPage& meta);

// Adds extents, in order of blocks, that are not in the list yet. For the one process that sweeps.
void add_free_extents(Relation index, const MetaPage& meta, const Extent* extents, uint32 count);

// Removes the extent that ends with the relation's last block and returns its start; `blocks` when there is none. The
// caller keeps everybody else out.
BlockNumber remove_free_tail(Relation index, const MetaPage& meta, BlockNumber blocks);

// Takes at most `wanted` pages off the list; {InvalidBlockNumber, 0} when it is empty.
Extent take_free_extent(Relation index, const MetaPage& meta, uint32 wanted);

// For a page that is linked in the caller's own WAL record: the list's page, exclusively locked, and the block that may
// be taken; InvalidBuffer when there is none. take_locked_page() then takes it off the page as registered.
Buffer lock_free_list(Relation index, const MetaPage& meta, BlockNumber* block);
void take_locked_page(Page page);

// The buffer of a block taken, pinned and exclusively locked; its content is of no account.
Buffer open_free_page(Relation index, BlockNumber block);

}  // namespace pgwarp
