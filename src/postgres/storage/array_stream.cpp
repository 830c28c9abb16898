#include "postgres/storage/array_stream.h"

#include "postgres/storage/checksum.h"

namespace pgwarp
{

struct ArrayWriter {
    Relation index;
    ForkNumber fork;
    PageKind kind;
    uint64 segment_id;
    StoredArray array;
    uint32 extent_capacity;
    uint64 written;
    pg_crc32c crc;
    Buffer buffer;  // the page being filled: pinned, and locked only inside write_array
    uint32 page_ordinal;
    uint32 page_filled;
};

ArrayWriter* begin_array(Relation index, ForkNumber fork, PageKind kind, uint64 segment_id, const ArrayShape& shape)
{
    ArrayWriter* writer = static_cast<ArrayWriter*>(palloc0(sizeof(ArrayWriter)));
    writer->index = index;
    writer->fork = fork;
    writer->kind = kind;
    writer->segment_id = segment_id;
    writer->array.shape = shape;
    writer->extent_capacity = 8;
    writer->array.extents = static_cast<Extent*>(palloc(writer->extent_capacity * sizeof(Extent)));
    const uint64 chunks = (shape.bytes() + chunk_bytes - 1) / chunk_bytes;
    writer->array.chunk_crc =
        static_cast<uint32*>(MemoryContextAllocHuge(CurrentMemoryContext, Max(chunks, 1) * sizeof(uint32)));
    INIT_CRC32C(writer->crc);
    writer->buffer = InvalidBuffer;
    return writer;
}

// Note a new page in the extents, joining it to the last one where it follows.
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
        array->extents = static_cast<Extent*>(repalloc(array->extents, writer->extent_capacity * sizeof(Extent)));
    }
    array->extents[array->extent_count++] = Extent{block, 1};
}

// Leave the page being filled in a sane state and unlocked, so that no lock is held while the caller waits for more.
static void pause_page(ArrayWriter* writer)
{
    if (!BufferIsValid(writer->buffer)) return;
    set_page_content_bytes(BufferGetPage(writer->buffer), writer->page_filled);
    if (writer->kind == PageKind::tombstones) seal_page(BufferGetPage(writer->buffer));
    MarkBufferDirty(writer->buffer);
    LockBuffer(writer->buffer, BUFFER_LOCK_UNLOCK);
}

static void resume_page(ArrayWriter* writer)
{
    if (BufferIsValid(writer->buffer)) LockBuffer(writer->buffer, BUFFER_LOCK_EXCLUSIVE);
}

static void drop_page(ArrayWriter* writer)
{
    if (!BufferIsValid(writer->buffer)) return;
    ReleaseBuffer(writer->buffer);
    writer->buffer = InvalidBuffer;
}

static void open_page(ArrayWriter* writer)
{
    CHECK_FOR_INTERRUPTS();
    writer->buffer = extend_index(writer->index, writer->fork);
    init_page(BufferGetPage(writer->buffer), writer->kind, writer->segment_id, writer->page_ordinal++);
    writer->page_filled = 0;
    add_page(writer, BufferGetBlockNumber(writer->buffer));
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
    resume_page(writer);
    while (length > 0) {
        if (!BufferIsValid(writer->buffer) || writer->page_filled == page_capacity) {
            pause_page(writer);
            drop_page(writer);
            open_page(writer);
        }
        const uint64 chunk_left = chunk_bytes - writer->written % chunk_bytes;
        const uint32 piece =
            static_cast<uint32>(Min(Min(length, static_cast<uint64>(page_capacity - writer->page_filled)), chunk_left));
        memcpy(page_content(BufferGetPage(writer->buffer)) + writer->page_filled, from, piece);
        COMP_CRC32C(writer->crc, from, piece);
        writer->page_filled += piece;
        writer->written += piece;
        from += piece;
        length -= piece;
        if (writer->written % chunk_bytes == 0) finish_chunk(writer);
    }
    pause_page(writer);
}

StoredArray end_array(ArrayWriter* writer)
{
    if (writer->written != writer->array.shape.bytes()) {
        elog(ERROR, "array \"%s\" got " UINT64_FORMAT " bytes of " UINT64_FORMAT, writer->array.shape.name,
             writer->written, writer->array.shape.bytes());
    }
    drop_page(writer);
    if (writer->written % chunk_bytes != 0) finish_chunk(writer);
    if (writer->kind == PageKind::tombstones) writer->array.chunk_count = 0;
    const StoredArray array = writer->array;
    pfree(writer);
    return array;
}

BlockNumber array_page_block(const StoredArray& array, uint64 ordinal)
{
    for (uint32 i = 0; i < array.extent_count; ++i) {
        if (ordinal < array.extents[i].count) return array.extents[i].start + static_cast<BlockNumber>(ordinal);
        ordinal -= array.extents[i].count;
    }
    return InvalidBlockNumber;
}

// A page that isn't ours any more: recycled if the index was rebuilt meanwhile, else corruption.
static ReadResult unexpected_page(Relation index, const Directory& directory, BlockNumber block)
{
    if (read_metapage(index).generation != directory.generation) return ReadResult::recycled;
    report_corruption(index, block, "the page is not the one expected there");
}

static ReadResult check_chunks(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                               uint64 length, const char* bytes)
{
    const uint64 end = offset + length;
    const uint64 total = array.shape.bytes();
    for (uint64 chunk = (offset + chunk_bytes - 1) / chunk_bytes; chunk < array.chunk_count; ++chunk) {
        const uint64 begin = chunk * chunk_bytes;
        const uint64 chunk_end = Min(begin + chunk_bytes, total);
        if (chunk_end > end) break;
        if (bytes_crc(bytes + (begin - offset), chunk_end - begin) != array.chunk_crc[chunk]) {
            return unexpected_page(index, directory, array_page_block(array, begin / page_capacity));
        }
    }
    return ReadResult::done;
}

// Copy bytes from pages.
static ReadResult read_pages(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                             uint64 length, BufferAccessStrategy strategy, void* out)
{
    if (offset > array.shape.bytes() || length > array.shape.bytes() - offset) {
        elog(ERROR, "read past the end of array \"%s\"", array.shape.name);
    }
    const PageKind kind = array.extents == directory.tombstones.extents ? PageKind::tombstones : PageKind::array;
    char* to = static_cast<char*>(out);
    uint64 position = offset;
    while (position < offset + length) {
        CHECK_FOR_INTERRUPTS();
        const uint64 ordinal = position / page_capacity;
        const uint32 within = static_cast<uint32>(position % page_capacity);
        const BlockNumber block = array_page_block(array, ordinal);
        if (!block_exists(index, block)) return unexpected_page(index, directory, block);
        const Buffer buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
        LockBuffer(buffer, BUFFER_LOCK_SHARE);
        Page page = BufferGetPage(buffer);
        const uint32 piece =
            static_cast<uint32>(Min(offset + length - position, static_cast<uint64>(page_capacity - within)));
        const bool ours = page_is(page, kind, directory.segment_id, static_cast<uint32>(ordinal)) &&
                          page_content_bytes(page) >= within + piece &&
                          (kind != PageKind::tombstones || page_is_sealed(page));
        if (ours) memcpy(to, page_content(page) + within, piece);
        UnlockReleaseBuffer(buffer);
        if (!ours) return unexpected_page(index, directory, block);
        to += piece;
        position += piece;
    }
    return ReadResult::done;
}

ReadResult read_array_bytes(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                            uint64 length, void* out)
{
    return read_pages(index, directory, array, offset, length, nullptr, out);
}

ReadResult read_array(Relation index, const Directory& directory, const StoredArray& array, uint64 offset,
                      uint64 length, void* out)
{
    BufferAccessStrategy strategy = bulk_read_strategy(array.shape.bytes() / page_capacity);
    const ReadResult result = read_pages(index, directory, array, offset, length, strategy, out);
    if (strategy != nullptr) FreeAccessStrategy(strategy);
    if (result != ReadResult::done) return result;
    return check_chunks(index, directory, array, offset, length, static_cast<const char*>(out));
}

}  // namespace pgwarp
