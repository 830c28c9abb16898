// Writes tuples to the array, and their starts to a temporary file.
#include "postgres/storage/included_writer.h"

extern "C" {
#include "storage/buffile.h"
}

namespace pgwarp
{

struct IncludedWriter {
    IncludedTarget target;
    ArrayWriter* tuples;  // null if there are no rows
    bool appends;
    uint64 first_place;  // start of the first new tuple
    IncludedTotals announced;
    IncludedTotals written;
    BufFile* places;  // start of each tuple; null when their lengths are equal
};

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

IncludedWriter* begin_included(const IncludedTarget& target, const IncludedTotals& totals)
{
    auto* made = static_cast<IncludedWriter*>(palloc0(sizeof(IncludedWriter)));
    made->target = target;
    made->announced = totals;
    if (totals.rows == 0) return made;
    const bool equal = totals.shortest == totals.longest;
    const ArrayShape shape = equal ? make_array_shape(array_included, ArrayType::u8, totals.rows, totals.longest)
                                   : make_array_shape(array_included, ArrayType::u8, totals.bytes, 1);
    made->tuples = begin_array(target.pages, PageKind::array, target.segment_id, shape);
    if (!equal) made->places = BufFileCreateTemp(false);
    return made;
}

bool can_append_included(const Directory& directory, const IncludedTotals& totals)
{
    if (directory.included.shape.rows == 0) return false;
    if (directory.included_at.shape.rows > 0) return true;
    return totals.shortest == totals.longest && totals.longest == directory.included.shape.width;
}

IncludedWriter* begin_append_included(const IncludedTarget& target, const IncludedTotals& totals)
{
    auto* made = static_cast<IncludedWriter*>(palloc0(sizeof(IncludedWriter)));
    const StoredArray& old = target.directory->included;
    const bool has_places = target.directory->included_at.shape.rows > 0;
    made->target = target;
    made->announced = totals;
    made->appends = true;
    made->first_place = old.shape.bytes();
    made->tuples =
        begin_append(target.pages, PageKind::array, target.segment_id, old, has_places ? totals.bytes : totals.rows);
    if (has_places) made->places = BufFileCreateTemp(false);
    return made;
}

void write_included(IncludedWriter* writer, const void* tuple, uint32 bytes)
{
    uint64 place = writer->first_place + writer->written.bytes;
    if (writer->places != nullptr) BufFileWrite(writer->places, &place, sizeof(place));
    write_array(writer->tuples, tuple, bytes);
    count_included(&writer->written, bytes);
}

// Copy the starts from the file to an array.
static StoredArray write_places(const IncludedWriter* writer)
{
    const uint64 rows = writer->written.rows;
    const IncludedTarget& target = writer->target;
    ArrayWriter* places = writer->appends ? begin_append(target.pages, PageKind::array, target.segment_id,
                                                         target.directory->included_at, rows)
                                          : begin_array(target.pages, PageKind::array, target.segment_id,
                                                        make_array_shape(array_included_at, ArrayType::u64, rows, 1));
    if (BufFileSeek(writer->places, 0, 0, SEEK_SET) != 0) elog(ERROR, "could not rewind a temporary file");
    uint64 piece[1024];
    for (uint64 done = 0; done < rows;) {
        const uint64 count = Min(rows - done, static_cast<uint64>(lengthof(piece)));
        const size_t bytes = sizeof(uint64) * count;
        if (BufFileRead(writer->places, piece, bytes) != bytes) elog(ERROR, "a temporary file ended too early");
        write_array(places, piece, bytes);
        done += count;
    }
    BufFileClose(writer->places);
    return end_array(places);
}

void end_included(IncludedWriter* writer)
{
    if (memcmp(&writer->written, &writer->announced, sizeof(IncludedTotals)) != 0) {
        elog(ERROR, "an index got " UINT64_FORMAT " included tuples of " UINT64_FORMAT, writer->written.rows,
             writer->announced.rows);
    }
    Directory* directory = writer->target.directory;
    const StoredArray tuples = writer->tuples != nullptr ? end_array(writer->tuples) : StoredArray{};
    directory->included_at = writer->places != nullptr ? write_places(writer) : StoredArray{};
    directory->included = tuples;
    pfree(writer);
}

}  // namespace pgwarp
