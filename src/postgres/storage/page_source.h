// Where the pages of new streams come from, and how they get there: pages are made in memory and put in place whole, so
// that no page of the index is ever seen half made.
#pragma once

#include "postgres/storage/free_pages.h"

namespace pgwarp
{

struct PageSource {
    Relation index;
    ForkNumber fork;
    const MetaPage* meta;  // null at build: then every page is new, and the build logs the fork at its end
    Extent taken;          // of the free list, not used yet
};

PageSource build_pages(Relation index, ForkNumber fork);
// For a merge: takes free pages, extends when there are none, and logs every page that it writes.
PageSource merge_pages(Relation index, const MetaPage* meta);

// A page in memory.
union PageImage {
    char bytes[BLCKSZ];
    double alignment;
};

// Puts a page in place; returns its block.
BlockNumber write_page(PageSource* source, const PageImage& image);
// Puts what was taken and not used back on the free list.
void close_pages(PageSource* source);

}  // namespace pgwarp
