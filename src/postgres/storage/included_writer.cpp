#include "postgres/storage/included_writer.h"

extern "C" {
#include "storage/buffile.h"
}

namespace pgwarp
{

struct IncludedWriter {
    IndexWriter* index;
    IncludedTotals announced;
    IncludedTotals written;
    BufFile* places;  // where each tuple begins; null when their lengths are equal
};

static ArrayShape make_shape(const char* name, ArrayType type, uint64 rows, uint64 width)
{
    ArrayShape shape;
    memset(static_cast<void*>(&shape), 0, sizeof(shape));
    strlcpy(shape.name, name, sizeof(shape.name));
    shape.type = type;
    shape.rows = rows;
    shape.width = width;
    return shape;
}

void add_totals(IncludedTotals* to, const IncludedTotals& totals)
{
    if (totals.rows == 0) return;
    to->shortest = to->rows == 0 ? totals.shortest : Min(to->shortest, totals.shortest);
    to->longest = Max(to->longest, totals.longest);
    to->rows += totals.rows;
    to->bytes += totals.bytes;
}

void count_included(IncludedTotals* to, uint32 bytes)
{
    add_totals(to, {1, bytes, bytes, bytes});
}

IncludedWriter* begin_included(IndexWriter* writer, const IncludedTotals& totals)
{
    auto* made = static_cast<IncludedWriter*>(palloc0(sizeof(IncludedWriter)));
    made->index = writer;
    made->announced = totals;
    if (totals.rows == 0) return made;
    if (totals.shortest == totals.longest) {
        add_index_array(writer, make_shape(array_included, ArrayType::u8, totals.rows, totals.longest));
    } else {
        add_index_array(writer, make_shape(array_included, ArrayType::u8, totals.bytes, 1));
        made->places = BufFileCreateTemp(false);
    }
    return made;
}

void write_included(IncludedWriter* writer, const void* tuple, uint32 bytes)
{
    if (writer->places != nullptr) BufFileWrite(writer->places, &writer->written.bytes, sizeof(uint64));
    write_index_array(writer->index, tuple, bytes);
    count_included(&writer->written, bytes);
}

// Copy from the file to the array.
static void write_places(IncludedWriter* writer)
{
    const uint64 rows = writer->written.rows;
    add_index_array(writer->index, make_shape(array_included_at, ArrayType::u64, rows, 1));
    if (BufFileSeek(writer->places, 0, 0, SEEK_SET) != 0) elog(ERROR, "could not rewind a temporary file");
    uint64 piece[1024];
    for (uint64 done = 0; done < rows;) {
        const uint64 count = Min(rows - done, static_cast<uint64>(lengthof(piece)));
        const size_t bytes = sizeof(uint64) * count;
        if (BufFileRead(writer->places, piece, bytes) != bytes) elog(ERROR, "a temporary file ended too early");
        write_index_array(writer->index, piece, bytes);
        done += count;
    }
    BufFileClose(writer->places);
}

void end_included(IncludedWriter* writer)
{
    if (memcmp(&writer->written, &writer->announced, sizeof(IncludedTotals)) != 0) {
        elog(ERROR, "an index got " UINT64_FORMAT " included tuples of " UINT64_FORMAT, writer->written.rows,
             writer->announced.rows);
    }
    if (writer->places != nullptr) write_places(writer);
    pfree(writer);
}

}  // namespace pgwarp
