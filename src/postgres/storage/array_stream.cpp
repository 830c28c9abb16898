// Fills pages with an array's bytes, and copies bytes out of pages.
#include "postgres/storage/array_stream.h"

#include "postgres/storage/checksum.h"
#include "postgres/storage/fault_point.h"

namespace pgwarp
{

struct ArrayWriter {
    PageSource* source;
    PageKind kind;
    uint64 segment_id;
    StoredArray array;
    uint32 extent_capacity;
    uint64 written;
    pg_crc32c crc;
    uint32 page_ordinal;
    uint32 page_filled;
    BlockNumber old_page;  // the page being filled, if it is in the index already
    PageImage page;        // the page being filled
};

// Allocate the extents and checksums of an array of this shape, beginning with those of `old`.
static void make_room(ArrayWriter* writer, const StoredArray& old)
{
    StoredArray* array = &writer->array;
    const uint64 chunks = (array->shape.bytes() + chunk_bytes - 1) / chunk_bytes;
    writer->extent_capacity = Max(8U, 2 * old.extent_count);
    array->extent_count = old.extent_count;
    array->chunk_count = old.chunk_count;
    array->extents =
        static_cast<Extent*>(MemoryContextAllocHuge(CurrentMemoryContext, writer->extent_capacity * sizeof(Extent)));
    array->chunk_crc =
        static_cast<uint32*>(MemoryContextAllocHuge(CurrentMemoryContext, Max(chunks, 1) * sizeof(uint32)));
    if (old.extent_count > 0) memcpy(array->extents, old.extents, old.extent_count * sizeof(Extent));
    if (old.chunk_count > 0) memcpy(array->chunk_crc, old.chunk_crc, old.chunk_count * sizeof(uint32));
}

// Begin the next page.
static void open_page(ArrayWriter* writer)
{
    init_page(writer->page.bytes, writer->kind, writer->segment_id, writer->page_ordinal);
    writer->page_filled = 0;
    writer->old_page = InvalidBlockNumber;
}

ArrayWriter* begin_array(PageSource* source, PageKind kind, uint64 segment_id, const ArrayShape& shape)
{
    ArrayWriter* writer = static_cast<ArrayWriter*>(palloc0(sizeof(ArrayWriter)));
    writer->source = source;
    writer->kind = kind;
    writer->segment_id = segment_id;
    writer->array.shape = shape;
    make_room(writer, StoredArray{});
    INIT_CRC32C(writer->crc);
    open_page(writer);
    return writer;
}

// Continue the last page of `old`.
static void reopen_page(ArrayWriter* writer, const StoredArray& old)
{
    const uint64 bytes = old.shape.bytes();
    writer->page_ordinal = static_cast<uint32>(bytes / page_capacity);
    const uint32 filled = static_cast<uint32>(bytes % page_capacity);
    open_page(writer);
    if (filled == 0) return;
    writer->page_filled = filled;
    writer->old_page = array_page_block(old, writer->page_ordinal);
    const Buffer buffer = read_page(writer->source->index, writer->old_page, writer->kind, writer->segment_id,
                                    writer->page_ordinal, BUFFER_LOCK_SHARE);
    Page page = BufferGetPage(buffer);
    const bool whole = page_content_bytes(page) >= filled;
    if (whole) memcpy(page_content(writer->page.bytes), page_content(page), filled);
    UnlockReleaseBuffer(buffer);
    if (!whole) report_corruption(writer->source->index, writer->old_page, "a page of an array is too short");
}

ArrayWriter* begin_append(PageSource* source, PageKind kind, uint64 segment_id, const StoredArray& old,
                          uint64 more_rows)
{
    ArrayWriter* writer = static_cast<ArrayWriter*>(palloc0(sizeof(ArrayWriter)));
    writer->source = source;
    writer->kind = kind;
    writer->segment_id = segment_id;
    writer->array.shape = old.shape;
    writer->array.shape.rows += more_rows;
    writer->written = old.shape.bytes();
    make_room(writer, old);
    INIT_CRC32C(writer->crc);
    if (old.chunk_count > 0 && writer->written % chunk_bytes != 0) {
        // The last chunk of `old` is incomplete, so its checksum is continued.
        writer->crc = old.chunk_crc[--writer->array.chunk_count];
        FIN_CRC32C(writer->crc);
    }
    reopen_page(writer, old);
    return writer;
}

// Add a new page to the extents, joining it to the last extent if it follows that.
static void add_page(ArrayWriter* writer, BlockNumber block)
{
    StoredArray* array = &writer->array;
    if (array->extent_count > 0) {
        Extent* last = &array->extents[array->extent_count - 1];
        if (last->start + last->count == block) {
            last->count++;
            return;
        }
    }
    if (array->extent_count == writer->extent_capacity) {
        writer->extent_capacity *= 2;
        array->extents = static_cast<Extent*>(repalloc_huge(array->extents, writer->extent_capacity * sizeof(Extent)));
    }
    array->extents[array->extent_count++] = Extent{block, 1};
}

// Write the page being filled.
static void put_page(ArrayWriter* writer)
{
    Page page = writer->page.bytes;
    set_page_content_bytes(page, writer->page_filled);
    if (writer->kind == PageKind::tombstones) seal_page(page);
    if (writer->old_page == InvalidBlockNumber) {
        add_page(writer, write_page(writer->source, writer->page));
    } else {
        Relation index = writer->source->index;
        const Buffer buffer = read_page(index, writer->old_page, writer->kind, writer->segment_id, writer->page_ordinal,
                                        BUFFER_LOCK_EXCLUSIVE);
        GenericXLogState* state = GenericXLogStart(index);
        Page stored = GenericXLogRegisterBuffer(state, buffer, 0);
        memcpy(page_content(stored), page_content(page), writer->page_filled);
        set_page_content_bytes(stored, writer->page_filled);
        if (writer->kind == PageKind::tombstones) seal_page(stored);
        fault_point("merge: before a page is continued");
        GenericXLogFinish(state);
        fault_point("merge: page continued");
        UnlockReleaseBuffer(buffer);
    }
    writer->page_ordinal++;
    open_page(writer);
}

static void finish_chunk(ArrayWriter* writer)
{
    FIN_CRC32C(writer->crc);
    writer->array.chunk_crc[writer->array.chunk_count++] = writer->crc;
    INIT_CRC32C(writer->crc);
}

void write_array(ArrayWriter* writer, const void* bytes, uint64 length)
{
    const char* from = static_cast<const char*>(bytes);
    if (writer->written + length > writer->array.shape.bytes()) {
        elog(ERROR, "array \"%s\" got more bytes than its shape has", writer->array.shape.name);
    }
    while (length > 0) {
        const uint64 chunk_left = chunk_bytes - writer->written % chunk_bytes;
        const uint32 piece =
            static_cast<uint32>(Min(Min(length, static_cast<uint64>(page_capacity - writer->page_filled)), chunk_left));
        memcpy(page_content(writer->page.bytes) + writer->page_filled, from, piece);
        COMP_CRC32C(writer->crc, from, piece);
        writer->page_filled += piece;
        writer->written += piece;
        from += piece;
        length -= piece;
        if (writer->written % chunk_bytes == 0) finish_chunk(writer);
        if (writer->page_filled == page_capacity) put_page(writer);
    }
}

StoredArray end_array(ArrayWriter* writer)
{
    if (writer->written != writer->array.shape.bytes()) {
        elog(ERROR, "array \"%s\" got " UINT64_FORMAT " bytes of " UINT64_FORMAT, writer->array.shape.name,
             writer->written, writer->array.shape.bytes());
    }
    if (writer->page_filled > 0) put_page(writer);
    if (writer->written % chunk_bytes != 0) finish_chunk(writer);
    if (writer->kind == PageKind::tombstones) writer->array.chunk_count = 0;
    const StoredArray array = writer->array;
    pfree(writer);
    return array;
}

// A cursor over an array's extents, for ascending ordinals of pages.
struct ExtentWalk {
    const StoredArray* array;
    uint32 extent;
    uint64 first;  // ordinal of the extent's first page
};

static BlockNumber walk_to(ExtentWalk* walk, uint64 ordinal)
{
    const StoredArray& array = *walk->array;
    while (walk->extent < array.extent_count && ordinal - walk->first >= array.extents[walk->extent].count) {
        walk->first += array.extents[walk->extent++].count;
    }
    if (walk->extent == array.extent_count) return InvalidBlockNumber;
    return array.extents[walk->extent].start + static_cast<BlockNumber>(ordinal - walk->first);
}

BlockNumber array_page_block(const StoredArray& array, uint64 ordinal)
{
    ExtentWalk walk = {&array, 0, 0};
    return walk_to(&walk, ordinal);
}

// A page has another identity: recycled if the index has another generation by now, else corruption.
static ReadResult unexpected_page(Relation index, const Segment& segment, BlockNumber block)
{
    if (read_metapage(index).generation != segment.generation) return ReadResult::recycled;
    report_corruption(index, block, "the page is not the one expected there");
}

static ReadResult check_chunks(Relation index, const Segment& segment, const StoredArray& array, uint64 offset,
                               uint64 length, const char* bytes)
{
    const uint64 end = offset + length;
    const uint64 total = array.shape.bytes();
    for (uint64 chunk = (offset + chunk_bytes - 1) / chunk_bytes; chunk < array.chunk_count; ++chunk) {
        const uint64 begin = chunk * chunk_bytes;
        const uint64 chunk_end = Min(begin + chunk_bytes, total);
        if (chunk_end > end) break;
        if (bytes_crc(bytes + (begin - offset), chunk_end - begin) != array.chunk_crc[chunk]) {
            return unexpected_page(index, segment, array_page_block(array, begin / page_capacity));
        }
    }
    return ReadResult::done;
}

// Copy bytes of an array out of pages.
static ReadResult read_pages(Relation index, const Segment& segment, const StoredArray& array, uint64 offset,
                             uint64 length, BufferAccessStrategy strategy, void* out)
{
    if (offset > array.shape.bytes() || length > array.shape.bytes() - offset) {
        elog(ERROR, "read past the end of array \"%s\"", array.shape.name);
    }
    const PageKind kind = array.extents == segment.tombstones.extents ? PageKind::tombstones : PageKind::array;
    char* to = static_cast<char*>(out);
    uint64 position = offset;
    ExtentWalk walk = {&array, 0, 0};
    while (position < offset + length) {
        CHECK_FOR_INTERRUPTS();
        const uint64 ordinal = position / page_capacity;
        const uint32 within = static_cast<uint32>(position % page_capacity);
        const BlockNumber block = walk_to(&walk, ordinal);
        if (!block_exists(index, block)) return unexpected_page(index, segment, block);
        const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
        LockBuffer(buffer, BUFFER_LOCK_SHARE);
        Page page = BufferGetPage(buffer);
        const uint32 piece =
            static_cast<uint32>(Min(offset + length - position, static_cast<uint64>(page_capacity - within)));
        const bool ours = page_is(page, kind, segment.segment_id, static_cast<uint32>(ordinal)) &&
                          page_content_bytes(page) >= within + piece &&
                          (kind != PageKind::tombstones || page_is_sealed(page));
        if (ours) memcpy(to, page_content(page) + within, piece);
        UnlockReleaseBuffer(buffer);
        if (!ours) return unexpected_page(index, segment, block);
        to += piece;
        position += piece;
    }
    return ReadResult::done;
}

ReadResult read_array_bytes(Relation index, const Segment& segment, const StoredArray& array, uint64 offset,
                            uint64 length, void* out)
{
    return read_pages(index, segment, array, offset, length, nullptr, out);
}

ReadResult read_array(Relation index, const Segment& segment, const StoredArray& array, uint64 offset, uint64 length,
                      void* out)
{
    BufferAccessStrategy strategy = bulk_read_strategy(array.shape.bytes() / page_capacity);
    const ReadResult result = read_pages(index, segment, array, offset, length, strategy, out);
    if (strategy != nullptr) FreeAccessStrategy(strategy);
    if (result != ReadResult::done) return result;
    return check_chunks(index, segment, array, offset, length, static_cast<const char*>(out));
}

}  // namespace pgwarp
