// Allocates and writes the pages of new streams. Pages are formed in memory and written whole, so no reader sees an
// incomplete page.
#pragma once

#include "postgres/storage/free_pages.h"

namespace pgwarp
{

// The pages of a stream that is being written.
struct PageSource {
    Relation index;
    ForkNumber fork;
    const MetaPage* meta;  // null at build: then every page is new, and the build logs the fork at its end
    Extent taken;          // unused pages taken off the free list
};

// For a build: extends the fork. The build logs its pages at its end.
PageSource build_pages(Relation index, ForkNumber fork);
// For a merge: uses free pages first, then extends the relation, and logs each page.
PageSource merge_pages(Relation index, const MetaPage* meta);

// A page in memory.
union PageImage {
    char bytes[BLCKSZ];
    double alignment;
};

// Writes a page to the next block, and returns the block.
BlockNumber write_page(PageSource* source, const PageImage& image);
// Puts the unused pages back on the free list.
void close_pages(PageSource* source);

}  // namespace pgwarp
