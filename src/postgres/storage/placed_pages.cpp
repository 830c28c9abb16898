// Reserves, forms, writes and logs pages past the shared buffers.
#include "postgres/storage/placed_pages.h"

#include "postgres/storage/fault_point.h"

extern "C" {
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "storage/smgr.h"
}

namespace pgwarp
{

struct PlacedPageWriter {
    Relation index;
    ForkNumber fork;
    PageKind kind;
    uint64 segment_id;
    bool logged;
    char* memory;  // memory of the pages
    Page pages[batch_pages];
    BlockNumber blocks[batch_pages];
};

// A batch lies within one segment file of the relation, because each file is registered with the checkpointer
// separately.
static_assert(RELSEG_SIZE % batch_pages == 0);

namespace
{

constexpr size_t io_alignment = 4096;  // for direct I/O

// Form the pages of a batch. Returns their number.
uint32 form_pages(PlacedPageWriter* writer, BlockNumber block, uint32 ordinal, uint32 most, const char* bytes,
                  uint64 length)
{
    const XLogRecPtr now = writer->logged ? GetXLogInsertRecPtr() : InvalidXLogRecPtr;
    uint32 count = 0;
    for (uint64 done = 0; count < most && done < length; ++count) {
        const uint32 piece = static_cast<uint32>(Min(length - done, static_cast<uint64>(page_capacity)));
        Page page = writer->pages[count];
        init_page(page, writer->kind, writer->segment_id, ordinal + count);
        memcpy(page_content(page), bytes + done, piece);
        set_page_content_bytes(page, piece);
        // With a current LSN, a base backup that began earlier doesn't verify the page's checksum while it is
        // being written.
        PageSetLSN(page, now);
        writer->blocks[count] = block + count;
#if PG_VERSION_NUM >= 190000
        PageSetChecksum(page, writer->blocks[count]);
#else
        PageSetChecksumInplace(page, writer->blocks[count]);
#endif
        done += piece;
    }
    return count;
}

void write_batch(PlacedPageWriter* writer, uint32 count)
{
    SMgrRelation file = RelationGetSmgr(writer->index);
    for (uint32 i = 0; i < count; ++i) {
        const bool names_file = i + 1 == count;
        smgrwrite(file, writer->fork, writer->blocks[i], writer->pages[i], !names_file);
    }
    if (!writer->logged) return;
    fault_point("build: pages written");
#if PG_VERSION_NUM >= 160000
    log_newpages(&writer->index->rd_locator, writer->fork, static_cast<int>(count), writer->blocks, writer->pages,
                 true);
#else
    log_newpages(&writer->index->rd_node, writer->fork, static_cast<int>(count), writer->blocks, writer->pages, true);
#endif
    fault_point("build: pages logged");
}

// Allocate pages, aligned for direct I/O. `*allocated` is the pointer for pfree.
char* page_memory(uint32 count, char** allocated)
{
    *allocated = static_cast<char*>(palloc(static_cast<size_t>(count) * BLCKSZ + io_alignment));
    return reinterpret_cast<char*>(TYPEALIGN(io_alignment, *allocated));
}

}  // namespace

BlockNumber reserve_pages(Relation index, ForkNumber fork, uint64 count)
{
    const BlockNumber first = RelationGetNumberOfBlocksInFork(index, fork);
    if (count > MaxBlockNumber - first) {
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("index \"%s\" would have more than %u pages", RelationGetRelationName(index), MaxBlockNumber),
                 errhint("Partition the table, or keep fewer bytes of each row (refine, codes).")));
    }
    if (count == 0) return first;
    char* allocated = nullptr;
    char* const zeros = page_memory(1, &allocated);
    memset(zeros, 0, BLCKSZ);
    const BlockNumber end = first + static_cast<BlockNumber>(count);
    // Extend to the last page of each file in order, because the storage manager requires full files before a new
    // one.
    for (BlockNumber last = first; last < end; ++last) {
        last = Min(last / RELSEG_SIZE * RELSEG_SIZE + (RELSEG_SIZE - 1), end - 1);
        smgrextend(RelationGetSmgr(index), fork, last, zeros, true);
    }
    pfree(allocated);
    return first;
}

PlacedPageWriter* open_page_writer(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, bool logged)
{
    auto* writer = static_cast<PlacedPageWriter*>(palloc0(sizeof(PlacedPageWriter)));
    writer->index = index;
    writer->fork = fork;
    writer->kind = kind;
    writer->segment_id = segment_id;
    writer->logged = logged;
    char* const first = page_memory(batch_pages, &writer->memory);
    for (uint32 i = 0; i < batch_pages; ++i) writer->pages[i] = first + static_cast<size_t>(i) * BLCKSZ;
    return writer;
}

void write_placed_pages(PlacedPageWriter* writer, BlockNumber block, uint32 ordinal, const char* bytes, uint64 length)
{
    while (length > 0) {
        CHECK_FOR_INTERRUPTS();
        const uint32 count = form_pages(writer, block, ordinal, batch_pages - block % batch_pages, bytes, length);
        write_batch(writer, count);
        const uint64 written = Min(length, static_cast<uint64>(count) * page_capacity);
        block += count;
        ordinal += count;
        bytes += written;
        length -= written;
    }
}

void close_page_writer(PlacedPageWriter* writer)
{
    pfree(writer->memory);
    pfree(writer);
}

}  // namespace pgwarp
