// Recognises metapages of pgvector, in all its versions.
#include "postgres/storage/pgvector_page.h"

namespace pgwarp
{

namespace
{

// The first number of the metapage, and the last one of every page.
struct Mark {
    uint32 magic;
    uint16 page_id;
};
constexpr Mark marks[] = {
    {0xA953A953, 0xFF90},  // hnsw
    {0x014FF1A7, 0xFF84},  // ivfflat
};

}  // namespace

bool is_page_of_pgvector(Page page)
{
    if (PageIsNew(page)) return false;
    uint32 magic = 0;
    uint16 page_id = 0;
    memcpy(&magic, PageGetContents(page), sizeof(magic));
    memcpy(&page_id, reinterpret_cast<const char*>(page) + BLCKSZ - sizeof(page_id), sizeof(page_id));
    for (const Mark& mark : marks) {
        if (mark.magic == magic && mark.page_id == page_id) return true;
    }
    return false;
}

bool is_file_of_pgvector(Relation index)
{
    // A cached directory was read from a file of this library.
    if (index->rd_amcache != nullptr || RelationGetNumberOfBlocks(index) == 0) return false;
    const Buffer buffer = read_frequent_page(index, metapage_block, BUFFER_LOCK_SHARE);
    const bool found = is_page_of_pgvector(BufferGetPage(buffer));
    UnlockReleaseBuffer(buffer);
    return found;
}

}  // namespace pgwarp
