// Sorts, writes and reads the keys of unplaced rows.
#include "postgres/storage/unplaced.h"

#include "postgres/storage/array_stream.h"
#include "postgres/storage/delta_log.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
}

namespace pgwarp
{

struct UnplacedSort {
    Tuplesortstate* sort;  // of keys
    uint64 count;
};

namespace
{

constexpr uint64 step_rows = chunk_bytes / sizeof(uint64);  // a whole checksum chunk

bool next_key(UnplacedSort* sort, uint64* key)
{
    Datum datum = 0;
    bool is_null = false;
#if PG_VERSION_NUM >= 160000
    const bool found = tuplesort_getdatum(sort->sort, true, false, &datum, &is_null, nullptr);
#else
    const bool found = tuplesort_getdatum(sort->sort, true, &datum, &is_null, nullptr);
#endif
    if (found) *key = static_cast<uint64>(DatumGetInt64(datum));
    return found;
}

ReadResult visit_segment(Relation index, const UnplacedSegment& segment, UnplacedVisit visit, void* state)
{
    if (segment.rows == 0) return ReadResult::done;
    uint64* dead = read_row_tombstones(index, segment);
    if (dead == nullptr) return ReadResult::recycled;
    auto* keys = static_cast<uint64*>(palloc(sizeof(uint64) * step_rows));
    ReadResult result = ReadResult::done;
    for (uint64 first = 0; first < segment.rows && result == ReadResult::done; first += step_rows) {
        const uint64 count = Min(step_rows, segment.rows - first);
        result = read_array(index, segment, segment.keys, first * sizeof(uint64), count * sizeof(uint64), keys);
        for (uint64 i = 0; i < count && result == ReadResult::done; ++i) {
            const uint64 row = first + i;
            if (((dead[row / 64] >> (row % 64)) & 1) == 0) visit(state, unplaced_row(keys[i]));
        }
    }
    pfree(keys);
    pfree(dead);
    return result;
}

}  // namespace

UnplacedSort* begin_unplaced_sort(int memory_kb, SortCoordinate coordinate)
{
    auto* sort = static_cast<UnplacedSort*>(palloc0(sizeof(UnplacedSort)));
    sort->sort =
        tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false, memory_kb, coordinate, TUPLESORT_NONE);
    return sort;
}

void add_unplaced(UnplacedSort* sort, const UnplacedRow& row)
{
    tuplesort_putdatum(sort->sort, Int64GetDatum(static_cast<int64>(unplaced_key(row))), false);
    sort->count++;
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
    uint64 key = 0;
    if (!next_key(sort, &key)) return false;
    *row = unplaced_row(key);
    return true;
}

void end_unplaced_sort(UnplacedSort* sort)
{
    tuplesort_end(sort->sort);
    pfree(sort);
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
        ArrayWriter* writer = begin_array(pages, PageKind::array, segment->segment_id, shape);
        perform_unplaced_sort(sort);
        for (uint64 key = 0; next_key(sort, &key);) {
            CHECK_FOR_INTERRUPTS();
            write_array(writer, &key, sizeof(key));
        }
        segment->keys = end_array(writer);
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
    while (next_delta(reader, &entry)) {
        if ((entry.flags & delta_dead) != 0) continue;
        const bool is_null = (entry.flags & delta_null) != 0;
        visit(state, {{entry.block, entry.offset, 0}, is_null ? UnplacedKind::null : UnplacedKind::not_a_number});
    }
    return end_delta_read(reader);
}

}  // namespace pgwarp
