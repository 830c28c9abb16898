// Begins, fills and finishes an index.
#include "postgres/storage/build_pages.h"

#include "postgres/storage/delta_log.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "access/xloginsert.h"
}

namespace pgwarp
{

struct IndexWriter {
    Relation index;
    ForkNumber fork;
    PageSource pages;
    MetaPage meta;
    Directory directory;
    ArrayWriter* current;
    BlockNumber placed_start;  // pages that other processes write and log
    BlockNumber placed_end;
    MemoryContext context;  // that lives as long as the build
};

// Reserve block 0, which finish_index fills.
static void reserve_metapage(Relation index, ForkNumber fork, uint64 generation)
{
    const Buffer buffer = extend_index(index, fork);
    if (BufferGetBlockNumber(buffer) != metapage_block) {
        UnlockReleaseBuffer(buffer);
        elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
    }
    init_page(BufferGetPage(buffer), PageKind::meta, generation, 0);
    MarkBufferDirty(buffer);
    UnlockReleaseBuffer(buffer);
}

IndexWriter* begin_index(Relation index, ForkNumber fork, const IndexShape& shape)
{
    IndexWriter* writer = static_cast<IndexWriter*>(palloc0(sizeof(IndexWriter)));
    writer->index = index;
    writer->fork = fork;
    writer->pages = build_pages(index, fork);
    writer->context = CurrentMemoryContext;
    writer->meta.magic = meta_magic;
    writer->meta.format_version = meta_format_version;
    writer->meta.shape = shape;
    writer->meta.generation = random_generation();
    writer->meta.log_identity = random_number64();
    writer->directory.generation = writer->meta.generation;
    writer->directory.segment_id = random_number64();
    writer->directory.arrays = static_cast<StoredArray*>(palloc0(max_arrays * sizeof(StoredArray)));
    reserve_metapage(index, fork, writer->meta.generation);
    return writer;
}

static void enter_array(IndexWriter* writer, const StoredArray& array)
{
    Directory* directory = &writer->directory;
    if (directory->array_count == max_arrays) elog(ERROR, "an index cannot have more than %u arrays", max_arrays);
    directory->arrays[directory->array_count++] = array;
}

static void close_current(IndexWriter* writer)
{
    if (writer->current == nullptr) return;
    enter_array(writer, end_array(writer->current));
    writer->current = nullptr;
}

void add_index_array(IndexWriter* writer, const ArrayShape& shape)
{
    MemoryContext old = MemoryContextSwitchTo(writer->context);
    close_current(writer);
    writer->current = begin_array(&writer->pages, PageKind::array, writer->directory.segment_id, shape);
    MemoryContextSwitchTo(old);
}

void write_index_array(IndexWriter* writer, const void* bytes, uint64 length)
{
    write_array(writer->current, bytes, length);
}

BlockNumber place_index_pages(IndexWriter* writer, uint64 pages)
{
    writer->placed_start = reserve_pages(writer->index, writer->fork, pages);
    writer->placed_end = writer->placed_start + static_cast<BlockNumber>(pages);
    return writer->placed_start;
}

uint64 index_segment_id(const IndexWriter* writer)
{
    return writer->directory.segment_id;
}

void add_written_array(IndexWriter* writer, const StoredArray& array)
{
    close_current(writer);
    enter_array(writer, array);
}

void keep_index_norms(IndexWriter* writer, NormRange norms)
{
    writer->meta.norms = norms;
}

IncludedTarget included_target(IndexWriter* writer)
{
    MemoryContext old = MemoryContextSwitchTo(writer->context);
    close_current(writer);
    MemoryContextSwitchTo(old);
    return {&writer->pages, writer->directory.segment_id, &writer->directory};
}

static void write_metapage(IndexWriter* writer)
{
    const Buffer buffer = ReadBufferExtended(writer->index, writer->fork, metapage_block, RBM_NORMAL, nullptr);
    LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
    put_metapage(BufferGetPage(buffer), writer->meta);
    MarkBufferDirty(buffer);
    UnlockReleaseBuffer(buffer);
}

// Log all pages but those that their writers have logged.
static void log_pages(IndexWriter* writer)
{
    const BlockNumber end = RelationGetNumberOfBlocksInFork(writer->index, writer->fork);
    log_newpage_range(writer->index, writer->fork, 0, writer->placed_start, true);
    fault_point("build: first pages logged");
    log_newpage_range(writer->index, writer->fork, writer->placed_end, end, true);
}

void finish_index(IndexWriter* writer, uint64 rows, const ParameterList& options, const Calibration& calibration,
                  UnplacedSort* unplaced)
{
    if (rows > max_rows) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("an index cannot have more than " UINT64_FORMAT " rows", max_rows)));
    }
    MemoryContext old = MemoryContextSwitchTo(writer->context);
    close_current(writer);
    writer->directory.rows = rows;
    writer->directory.options = options;
    writer->directory.calibration = calibration;
    writer->directory.tombstones = write_clean_bitmap(&writer->pages, writer->directory.segment_id, rows);
    write_unplaced(&writer->pages, unplaced, &writer->directory);
    for (uint32 i = 0; i < most_logs; ++i) {
        create_delta_log(writer->index, writer->fork, log_segment_id(writer->meta, i), &writer->meta.logs[i]);
    }
    writer->meta.free_pages = create_free_list(writer->index, writer->fork, writer->meta.log_identity);
    writer->directory.trained_rows = static_cast<uint32>(rows);
    write_directory(&writer->pages, writer->directory, &writer->meta);
    write_metapage(writer);
    fault_point("build: before the log");
    if (RelationNeedsWAL(writer->index) || writer->fork == INIT_FORKNUM) log_pages(writer);
    fault_point("build: logged");
    pfree(writer);
    MemoryContextSwitchTo(old);
}

}  // namespace pgwarp
