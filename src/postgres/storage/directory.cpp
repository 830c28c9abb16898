// Reads and writes the directory's bytes: a header, then each segment (a header, its arrays with their extents and
// chunk checksums, the tombstones last). The second segment holds the unplaced rows: their keys, and their attributes
// in an index with attributes. Format 1 lacks it.
#include "postgres/storage/directory.h"

#include "postgres/storage/checksum.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

namespace
{

struct DirectoryHeader {
    ParameterList options;
    Calibration calibration;
    uint32 segment_count;
    uint32 changed_rows;  // since the calibration
};

struct SegmentHeader {
    uint64 segment_id;
    uint64 rows;
    uint32 array_count;
    uint32 trained_rows;
};

struct ArrayHeader {
    ArrayShape shape;
    uint32 extent_count;
    uint32 chunk_count;
};

// A cursor over the directory's bytes. Raises an error instead of reading past their end.
struct Reader {
    Relation index;
    BlockNumber block;
    const char* bytes;
    uint64 left;
};

void take(Reader* reader, void* out, uint64 length)
{
    if (length > reader->left) report_corruption(reader->index, reader->block, "the directory ends too early");
    memcpy(out, reader->bytes, length);
    reader->bytes += length;
    reader->left -= length;
}

void append_array(StringInfo out, const StoredArray& array)
{
    ArrayHeader header;
    memset(&header, 0, sizeof(header));
    header.shape = array.shape;
    header.extent_count = array.extent_count;
    header.chunk_count = array.chunk_count;
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(&header), sizeof(header));
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(array.extents),
                           static_cast<int>(array.extent_count * sizeof(Extent)));
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(array.chunk_crc),
                           static_cast<int>(array.chunk_count * sizeof(uint32)));
}

// Read one array. Check that its extents hold its bytes and lie within the relation.
void take_array(Reader* reader, BlockNumber blocks, bool has_crc, StoredArray* array)
{
    ArrayHeader header;
    take(reader, &header, sizeof(header));
    const uint32 element = array_type_bytes(header.shape.type);
    const uint64 limit = static_cast<uint64>(blocks) * page_capacity;
    if (element == 0 || header.shape.rows > limit ||
        (header.shape.rows > 0 && header.shape.width > limit / header.shape.rows) || header.shape.bytes() > limit ||
        header.shape.name[sizeof(header.shape.name) - 1] != '\0') {
        report_corruption(reader->index, reader->block, "the directory holds an impossible array");
    }
    const uint64 bytes = header.shape.bytes();
    const uint64 chunks = has_crc ? (bytes + chunk_bytes - 1) / chunk_bytes : 0;
    const uint64 lists = header.extent_count * sizeof(Extent) + header.chunk_count * sizeof(uint32);
    if (header.chunk_count != chunks || lists > reader->left) {
        report_corruption(reader->index, reader->block, "the directory holds an impossible array");
    }
    array->shape = header.shape;
    array->extent_count = header.extent_count;
    array->chunk_count = header.chunk_count;
    array->extents = static_cast<Extent*>(palloc(Max(header.extent_count, 1U) * sizeof(Extent)));
    array->chunk_crc = static_cast<uint32*>(palloc(Max(header.chunk_count, 1U) * sizeof(uint32)));
    take(reader, array->extents, header.extent_count * sizeof(Extent));
    take(reader, array->chunk_crc, header.chunk_count * sizeof(uint32));
    uint64 pages = 0;
    for (uint32 i = 0; i < array->extent_count; ++i) {
        const Extent extent = array->extents[i];
        if (extent.count > blocks || extent.start > blocks - extent.count) {
            report_corruption(reader->index, reader->block, "an array lies past the end of the index");
        }
        pages += extent.count;
    }
    if (pages * page_capacity < bytes) {
        report_corruption(reader->index, reader->block, "an array has too few pages");
    }
}

// Assign an array by its name: to the engine's arrays or to one of the included columns.
void keep_array(Directory* directory, const StoredArray& array)
{
    if (strcmp(array.shape.name, array_included) == 0) {
        directory->included = array;
    } else if (strcmp(array.shape.name, array_included_at) == 0) {
        directory->included_at = array;
    } else {
        directory->arrays[directory->array_count++] = array;
    }
}

// Check that either every row has an included tuple or none has.
void check_included(const Reader& reader, const Directory& directory)
{
    const ArrayShape& tuples = directory.included.shape;
    const ArrayShape& places = directory.included_at.shape;
    const bool possible = places.rows == 0
                              ? tuples.rows == 0 || (tuples.rows == directory.rows && tuples.type == ArrayType::u8)
                              : places.rows == directory.rows && places.width == 1 && places.type == ArrayType::u64 &&
                                    tuples.type == ArrayType::u8;
    if (!possible || (places.rows == 0 && tuples.width > max_included_bytes)) {
        report_corruption(reader.index, reader.block, "the directory holds impossible included columns");
    }
}

SegmentHeader take_segment_header(Reader* reader, Segment* segment)
{
    SegmentHeader header;
    take(reader, &header, sizeof(header));
    if (header.array_count > max_arrays || header.rows > max_rows) {
        report_corruption(reader->index, reader->block, "the directory holds an impossible segment");
    }
    segment->segment_id = header.segment_id;
    segment->rows = header.rows;
    return header;
}

void take_tombstones(Reader* reader, BlockNumber blocks, Segment* segment)
{
    take_array(reader, blocks, false, &segment->tombstones);
    if (segment->tombstones.shape.bytes() < (segment->rows + 63) / 64 * 8) {
        report_corruption(reader->index, reader->block, "the tombstones are fewer than the rows");
    }
}

void take_segment(Reader* reader, BlockNumber blocks, Directory* directory)
{
    const SegmentHeader header = take_segment_header(reader, directory);
    directory->trained_rows = header.trained_rows;
    directory->arrays = static_cast<StoredArray*>(palloc0(Max(header.array_count, 1U) * sizeof(StoredArray)));
    for (uint32 i = 0; i < header.array_count; ++i) {
        StoredArray array;
        take_array(reader, blocks, true, &array);
        keep_array(directory, array);
    }
    check_included(*reader, *directory);
    take_tombstones(reader, blocks, directory);
}

// Take an array of the segment of unplaced rows, which must have this name and width, and a row for each of its rows.
void take_unplaced_array(Reader* reader, BlockNumber blocks, const char* name, uint64 width, uint64 rows,
                         StoredArray* array)
{
    take_array(reader, blocks, true, array);
    const ArrayShape& shape = array->shape;
    const bool possible = shape.rows == rows && shape.width == width && shape.type == ArrayType::u64;
    if (!possible || strcmp(shape.name, name) != 0)
        report_corruption(reader->index, reader->block, "the directory holds impossible unplaced rows");
}

void take_unplaced(Reader* reader, BlockNumber blocks, uint32 attribute_count, UnplacedSegment* segment)
{
    const SegmentHeader header = take_segment_header(reader, segment);
    const uint32 arrays = header.rows == 0 ? 0 : attribute_count == 0 ? 1 : 2;
    if (header.array_count != arrays)
        report_corruption(reader->index, reader->block, "the directory holds impossible unplaced rows");
    if (arrays > 0) take_unplaced_array(reader, blocks, array_unplaced, 1, header.rows, &segment->keys);
    if (arrays > 1)
        take_unplaced_array(reader, blocks, array_attributes, attribute_count, header.rows, &segment->attributes);
    take_tombstones(reader, blocks, segment);
}

uint32 segment_count(const MetaPage& meta)
{
    return keeps_unplaced(meta) ? 2 : 1;
}

// Read the directory's bytes from its linked pages. Null when the index has another generation by now.
char* read_bytes(Relation index, const MetaPage& meta, BlockNumber blocks)
{
    if (meta.directory_bytes > static_cast<uint64>(blocks) * page_capacity || meta.directory_bytes > MaxAllocSize / 2) {
        report_corruption(index, metapage_block, "the directory is longer than the index");
    }
    char* bytes = static_cast<char*>(palloc(Max(meta.directory_bytes, 1U)));
    BlockNumber block = meta.directory_block;
    uint32 filled = 0;
    for (uint32 ordinal = 0; filled < meta.directory_bytes; ++ordinal) {
        const Buffer buffer =
            try_read_page(index, block, PageKind::directory, meta.generation, ordinal, BUFFER_LOCK_SHARE);
        if (!BufferIsValid(buffer)) {
            if (read_metapage(index).generation != meta.generation) return nullptr;
            report_corruption(index, block, "the page is not the one expected there");
        }
        Page page = BufferGetPage(buffer);
        const uint32 length = Min(page_content_bytes(page), meta.directory_bytes - filled);
        if (length == 0) report_corruption(index, block, "a directory page is empty");
        memcpy(bytes + filled, page_content(page), length);
        filled += length;
        block = page_trailer(page)->next;
        UnlockReleaseBuffer(buffer);
        CHECK_FOR_INTERRUPTS();
    }
    return bytes;
}

}  // namespace

Directory* read_directory(Relation index, const MetaPage& meta)
{
    const BlockNumber blocks = RelationGetNumberOfBlocks(index);
    char* bytes = read_bytes(index, meta, blocks);
    if (bytes == nullptr) return nullptr;
    if (bytes_crc(bytes, meta.directory_bytes) != meta.directory_crc) {
        report_corruption(index, meta.directory_block, "the directory's checksum does not match");
    }
    Reader reader = {index, meta.directory_block, bytes, meta.directory_bytes};
    DirectoryHeader header;
    take(&reader, &header, sizeof(header));
    if (header.options.count > ParameterList::capacity || header.calibration.count > Calibration::capacity ||
        header.segment_count != segment_count(meta)) {
        report_corruption(index, meta.directory_block, "the directory's header is impossible");
    }
    Directory* directory = static_cast<Directory*>(palloc0(sizeof(Directory)));
    directory->generation = meta.generation;
    directory->options = header.options;
    directory->calibration = header.calibration;
    directory->changed_rows = header.changed_rows;
    take_segment(&reader, blocks, directory);
    directory->unplaced.generation = meta.generation;
    if (keeps_unplaced(meta)) take_unplaced(&reader, blocks, meta.shape.attribute_count, &directory->unplaced);
    if (reader.left != 0) report_corruption(index, meta.directory_block, "the directory is too long");
    pfree(bytes);
    return directory;
}

static void append_unplaced(StringInfo out, const UnplacedSegment& segment)
{
    SegmentHeader header;
    memset(&header, 0, sizeof(header));
    header.segment_id = segment.segment_id;
    header.rows = segment.rows;
    header.array_count = (segment.keys.shape.rows > 0 ? 1 : 0) + (segment.attributes.shape.rows > 0 ? 1 : 0);
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(&header), sizeof(header));
    if (segment.keys.shape.rows > 0) append_array(out, segment.keys);
    if (segment.attributes.shape.rows > 0) append_array(out, segment.attributes);
    append_array(out, segment.tombstones);
}

// Append the directory's bytes, in the format of `meta`.
static void append_directory(StringInfo out, const MetaPage& meta, const Directory& directory)
{
    DirectoryHeader header;
    memset(static_cast<void*>(&header), 0, sizeof(header));
    header.options = directory.options;
    header.calibration = directory.calibration;
    header.segment_count = segment_count(meta);
    header.changed_rows = directory.changed_rows;
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(&header), sizeof(header));
    SegmentHeader segment;
    memset(&segment, 0, sizeof(segment));
    segment.segment_id = directory.segment_id;
    segment.rows = directory.rows;
    const StoredArray* const included[] = {&directory.included, &directory.included_at};
    segment.array_count = directory.array_count;
    segment.trained_rows = directory.trained_rows;
    for (const StoredArray* array : included) segment.array_count += array->shape.rows > 0 ? 1 : 0;
    appendBinaryStringInfo(out, reinterpret_cast<const char*>(&segment), sizeof(segment));
    for (uint32 i = 0; i < directory.array_count; ++i) append_array(out, directory.arrays[i]);
    for (const StoredArray* array : included) {
        if (array->shape.rows > 0) append_array(out, *array);
    }
    append_array(out, directory.tombstones);
    if (keeps_unplaced(meta)) append_unplaced(out, directory.unplaced);
}

void write_directory(PageSource* pages, const Directory& directory, MetaPage* meta)
{
    StringInfoData out;
    initStringInfo(&out);
    append_directory(&out, *meta, directory);
    const uint32 length = static_cast<uint32>(out.len);
    meta->directory_bytes = length;
    meta->directory_crc = bytes_crc(out.data, length);
    meta->directory_block = InvalidBlockNumber;
    // The last page is written first, so that each page can link to the next.
    auto* image = static_cast<PageImage*>(palloc(sizeof(PageImage)));
    for (uint32 ordinal = (length + page_capacity - 1) / page_capacity; ordinal-- > 0;) {
        const uint32 first = ordinal * page_capacity;
        const uint32 piece = Min(page_capacity, length - first);
        init_page(image->bytes, PageKind::directory, meta->generation, ordinal);
        memcpy(page_content(image->bytes), out.data + first, piece);
        set_page_content_bytes(image->bytes, piece);
        page_trailer(image->bytes)->next = meta->directory_block;
        meta->directory_block = write_page(pages, *image);
    }
    pfree(image);
    pfree(out.data);
}

const StoredArray* find_array(const Directory& directory, const char* name)
{
    for (uint32 i = 0; i < directory.array_count; ++i) {
        if (strcmp(directory.arrays[i].shape.name, name) == 0) return &directory.arrays[i];
    }
    return nullptr;
}

}  // namespace pgwarp
