// Sorts, writes and reads unplaced rows.
#include "postgres/storage/unplaced.h"

#include "postgres/storage/array_stream.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "port/pg_bswap.h"
}

namespace pgwarp
{

struct UnplacedSort {
    Tuplesortstate* sort;  // of keys or, with attributes, of SortRecords
    uint64 count;
    uint32 attribute_count;
    uint64 attributes[max_attributes];  // of the row returned last
};

namespace
{

constexpr uint64 step_rows = chunk_bytes / sizeof(uint64);  // a whole checksum chunk

// A row with attributes, as a bytea to PostgreSQL: the key comes first, from its highest byte down, so that rows are
// sorted by keys.
struct SortRecord {
    char header[VARHDRSZ];
    char key[sizeof(uint64)];
    char attributes[sizeof(uint64) * max_attributes];
};

Size record_bytes(const UnplacedSort* sort)
{
    return offsetof(SortRecord, attributes) + sizeof(uint64) * sort->attribute_count;
}

void put_record(UnplacedSort* sort, const UnplacedRow& row)
{
    alignas(uint64) SortRecord record;
    const uint64 key = pg_hton64(unplaced_key(row));
    SET_VARSIZE(&record, record_bytes(sort));
    memcpy(record.key, &key, sizeof(key));
    memcpy(record.attributes, row.attributes, sizeof(uint64) * sort->attribute_count);
    tuplesort_putdatum(sort->sort, PointerGetDatum(&record), false);
}

UnplacedRow take_record(UnplacedSort* sort, Datum datum)
{
    auto* record = reinterpret_cast<SortRecord*>(DatumGetPointer(datum));
    uint64 key = 0;
    memcpy(&key, record->key, sizeof(key));
    memcpy(sort->attributes, record->attributes, sizeof(uint64) * sort->attribute_count);
    pfree(record);
    UnplacedRow row = unplaced_row(pg_ntoh64(key));
    row.attributes = sort->attributes;
    return row;
}

ReadResult visit_segment(Relation index, const UnplacedSegment& segment, UnplacedVisit visit, void* state)
{
    if (segment.rows == 0) return ReadResult::done;
    uint64* dead = read_row_tombstones(index, segment);
    if (dead == nullptr) return ReadResult::recycled;
    const uint64 columns = segment.attributes.shape.width;
    auto* keys = static_cast<uint64*>(palloc(sizeof(uint64) * step_rows));
    auto* attributes = static_cast<uint64*>(palloc(sizeof(uint64) * columns * step_rows));
    ReadResult result = ReadResult::done;
    for (uint64 first = 0; first < segment.rows && result == ReadResult::done; first += step_rows) {
        const uint64 count = Min(step_rows, segment.rows - first);
        result = read_array(index, segment, segment.keys, first * sizeof(uint64), count * sizeof(uint64), keys);
        if (result == ReadResult::done && columns > 0) {
            const uint64 row_bytes = sizeof(uint64) * columns;
            result = read_array(index, segment, segment.attributes, first * row_bytes, count * row_bytes, attributes);
        }
        for (uint64 i = 0; i < count && result == ReadResult::done; ++i) {
            if ((dead[(first + i) / 64] >> ((first + i) % 64)) & 1) continue;
            UnplacedRow row = unplaced_row(keys[i]);
            row.attributes = attributes + i * columns;
            visit(state, row);
        }
    }
    pfree(attributes);
    pfree(keys);
    pfree(dead);
    return result;
}

}  // namespace

UnplacedSort* begin_unplaced_sort(int memory_kb, uint32 attribute_count, SortCoordinate coordinate)
{
    auto* sort = static_cast<UnplacedSort*>(palloc0(sizeof(UnplacedSort)));
    sort->attribute_count = attribute_count;
    // Rows with attributes are written in two passes, by one process.
    const bool rescans = attribute_count > 0 && coordinate == nullptr;
    sort->sort = tuplesort_begin_datum(attribute_count > 0 ? BYTEAOID : INT8OID,
                                       attribute_count > 0 ? ByteaLessOperator : Int8LessOperator, InvalidOid, false,
                                       memory_kb, coordinate, rescans ? TUPLESORT_RANDOMACCESS : TUPLESORT_NONE);
    return sort;
}

void add_unplaced(UnplacedSort* sort, const UnplacedRow& row)
{
    sort->count++;
    if (sort->attribute_count > 0) return put_record(sort, row);
    tuplesort_putdatum(sort->sort, Int64GetDatum(static_cast<int64>(unplaced_key(row))), false);
}

uint64 count_unplaced(const UnplacedSort* sort)
{
    return sort->count;
}

void perform_unplaced_sort(UnplacedSort* sort)
{
    tuplesort_performsort(sort->sort);
}

bool next_unplaced(UnplacedSort* sort, UnplacedRow* row)
{
    Datum datum = 0;
    bool is_null = false;
#if PG_VERSION_NUM >= 160000
    const bool found = tuplesort_getdatum(sort->sort, true, true, &datum, &is_null, nullptr);
#else
    const bool found = tuplesort_getdatum(sort->sort, true, &datum, &is_null, nullptr);
#endif
    if (!found) return false;
    *row =
        sort->attribute_count > 0 ? take_record(sort, datum) : unplaced_row(static_cast<uint64>(DatumGetInt64(datum)));
    return true;
}

void end_unplaced_sort(UnplacedSort* sort)
{
    tuplesort_end(sort->sort);
    pfree(sort);
}

// Writes a part of each sorted row as an array of the segment.
static StoredArray write_part(PageSource* pages, UnplacedSort* sort, uint64 segment_id, const ArrayShape& shape,
                              void (*write)(ArrayWriter* writer, const UnplacedRow& row, uint64 bytes))
{
    ArrayWriter* writer = begin_array(pages, PageKind::array, segment_id, shape);
    for (UnplacedRow row; next_unplaced(sort, &row);) {
        CHECK_FOR_INTERRUPTS();
        write(writer, row, sizeof(uint64) * shape.width);
    }
    return end_array(writer);
}

static void write_key(ArrayWriter* writer, const UnplacedRow& row, uint64 bytes)
{
    const uint64 key = unplaced_key(row);
    write_array(writer, &key, bytes);
}

static void write_attributes(ArrayWriter* writer, const UnplacedRow& row, uint64 bytes)
{
    write_array(writer, row.attributes, bytes);
}

void write_unplaced(PageSource* pages, UnplacedSort* sort, Directory* directory)
{
    if (sort->count > max_rows) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("an index cannot have more than " UINT64_FORMAT " rows without a distance", max_rows)));
    }
    UnplacedSegment* segment = &directory->unplaced;
    *segment = {};
    segment->generation = directory->generation;
    segment->segment_id = random_number64();
    segment->rows = sort->count;
    if (sort->count > 0) {
        const ArrayShape shape = make_array_shape(array_unplaced, ArrayType::u64, sort->count, 1);
        perform_unplaced_sort(sort);
        segment->keys = write_part(pages, sort, segment->segment_id, shape, write_key);
    }
    if (sort->count > 0 && sort->attribute_count > 0) {
        const ArrayShape shape = make_array_shape(array_attributes, ArrayType::u64, sort->count, sort->attribute_count);
        tuplesort_rescan(sort->sort);
        segment->attributes = write_part(pages, sort, segment->segment_id, shape, write_attributes);
    }
    segment->tombstones = write_clean_bitmap(pages, segment->segment_id, segment->rows);
}

ReadResult visit_unplaced(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                          UnplacedVisit visit, void* state)
{
    if (!keeps_unplaced(meta)) return ReadResult::done;
    if (visit_segment(index, directory.unplaced, visit, state) == ReadResult::recycled) return ReadResult::recycled;
    DeltaReader* reader = begin_delta_read(index, meta, unplaced_log, meta.logs[unplaced_log].start, end);
    DeltaEntry entry;
    uint64 attributes[max_attributes];
    while (next_delta_attributes(reader, &entry, attributes)) {
        if ((entry.flags & delta_dead) != 0) continue;
        const bool is_null = (entry.flags & delta_null) != 0;
        visit(state,
              {{entry.block, entry.offset, 0}, is_null ? UnplacedKind::null : UnplacedKind::not_a_number, attributes});
    }
    return end_delta_read(reader);
}

}  // namespace pgwarp
