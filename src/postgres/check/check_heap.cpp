// Compares the entries of an index with the rows of its table.
#include "postgres/am/element_type.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/row_value.h"
#include "postgres/am/tid_set.h"
#include "postgres/check/check.h"
#include "postgres/check/check_codes.h"
#include "postgres/storage/array_stream.h"
#include "postgres/storage/unplaced.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

struct HeapCheck {
    IndexCheck* check;
    BlockNumber heap_blocks;
    TidSet indexed;    // tids of placed and unplaced rows
    TidSet unplaced;   // tids of unplaced rows
    CodeCheck* codes;  // null without filter columns
    int vector;        // position of the column that the index orders by
    float* space;      // [dimensions]
    MemoryContext row_context;
};

// Add the address of a live entry. Raises an error when it is past the heap or occurs twice.
void take_tid(HeapCheck* heap, BlockNumber at, Tid tid, const uint64* codes)
{
    Relation index = heap->check->index;
    if (tid.block >= heap->heap_blocks || tid.offset == InvalidOffsetNumber) {
        report_corruption(index, at, "an entry points past the end of the table");
    }
    if (!add_tid(&heap->indexed, tid)) report_corruption(index, at, "two entries point to the same row");
    if (heap->codes != nullptr) take_stored_codes(heap->codes, tid, codes);
}

// Reads the codes of some rows to codes[count][attribute_count]. False when the index has another generation by now.
bool read_codes(const IndexCheck& check, uint64 first, uint64 count, uint64* codes)
{
    const StoredArray* array = find_array(*check.directory, array_attributes);
    if (array == nullptr) report_corruption(check.index, metapage_block, "the index lacks the codes of its columns");
    const uint64 row_bytes = sizeof(uint64) * check.meta.shape.attribute_count;
    return read_array(check.index, *check.directory, *array, first * row_bytes, count * row_bytes, codes) ==
           ReadResult::done;
}

bool take_rows(HeapCheck* heap)
{
    constexpr uint64 step = chunk_bytes / sizeof(uint64);
    const IndexCheck& check = *heap->check;
    const Directory& directory = *check.directory;
    if (directory.rows == 0) return true;
    const uint64* dead = read_row_tombstones(check.index, directory);
    if (dead == nullptr) return false;
    const StoredArray& blocks_array = *find_array(directory, array_tid_block);
    const StoredArray& offsets_array = *find_array(directory, array_tid_offset);
    auto* blocks = static_cast<uint32*>(palloc(sizeof(uint32) * step));
    auto* offsets = static_cast<uint16*>(palloc(sizeof(uint16) * step));
    const uint64 columns = check.meta.shape.attribute_count;
    auto* codes = static_cast<uint64*>(palloc(sizeof(uint64) * step * columns));
    for (uint64 first = 0; first < directory.rows; first += step) {
        CHECK_FOR_INTERRUPTS();
        const uint64 count = Min(step, directory.rows - first);
        if (read_array(check.index, directory, blocks_array, first * sizeof(uint32), count * sizeof(uint32), blocks) ==
                ReadResult::recycled ||
            read_array(check.index, directory, offsets_array, first * sizeof(uint16), count * sizeof(uint16),
                       offsets) == ReadResult::recycled) {
            return false;
        }
        if (columns > 0 && !read_codes(check, first, count, codes)) return false;
        for (uint64 i = 0; i < count; ++i) {
            const uint64 row = first + i;
            if ((dead[row / 64] >> (row % 64)) & 1) continue;
            take_tid(heap, array_page_block(blocks_array, row * sizeof(uint32) / page_capacity),
                     {blocks[i], offsets[i], 0}, codes + i * columns);
        }
    }
    pfree(blocks);
    pfree(offsets);
    pfree(codes);
    return true;
}

bool take_entries(HeapCheck* heap)
{
    const IndexCheck& check = *heap->check;
    for (uint32 log = 0; log < delta_log_count; ++log) {
        DeltaReader* reader =
            begin_delta_read(check.index, check.meta, log, check.meta.logs[log].start, check.ends[log]);
        DeltaEntry entry;
        RowView row;
        while (heap->codes != nullptr ? next_delta_row(reader, &entry, &row) : next_delta(reader, &entry)) {
            if (entry.flags & delta_dead) continue;
            take_tid(heap, check.meta.logs[log].head, {entry.block, entry.offset, 0}, row.attributes);
        }
        if (end_delta_read(reader) == ReadResult::recycled) return false;
    }
    return true;
}

void take_unplaced_row(void* state, const UnplacedRow& row)
{
    auto* heap = static_cast<HeapCheck*>(state);
    take_tid(heap, heap->check->meta.logs[unplaced_log].head, row.tid, row.attributes);
    add_tid(&heap->unplaced, row.tid);
}

bool take_unplaced(HeapCheck* heap)
{
    const IndexCheck& check = *heap->check;
    return visit_unplaced(check.index, check.meta, *check.directory, check.unplaced_end, take_unplaced_row, heap) ==
           ReadResult::done;
}

bool has_place(HeapCheck* heap, const Datum* values, const bool* nulls)
{
    const IndexShape& shape = heap->check->meta.shape;
    const bool lists = is_list(shape.element);
    if (nulls[heap->vector] || (lists && shape.element != ElementType::sparse)) return !nulls[heap->vector];
    MemoryContext outer = MemoryContextSwitchTo(heap->row_context);
    const Datum value = values[heap->vector];
    RowView row;
    const bool placed = lists ? index_row_list(shape, *index_key_type(heap->check->index).list, value, &row)
                              : index_row_value(shape, value, heap->space);
    MemoryContextSwitchTo(outer);
    MemoryContextReset(heap->row_context);
    return placed;
}

// An IndexBuildCallback that raises an error for a row that the index lacks.
void expect_row(Relation index, ItemPointer tid, Datum* values, bool* nulls, bool, void* state)
{
    auto* heap = static_cast<HeapCheck*>(state);
    const bool placed = has_place(heap, values, nulls);
    if (!placed && !keeps_unplaced(heap->check->meta)) return;
    const Tid wanted = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    if (heap->codes != nullptr) take_row_codes(heap->codes, wanted, values, nulls);
    if (has_tid(&heap->indexed, wanted) && has_tid(&heap->unplaced, wanted) != placed) return;
    ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                    errmsg("row (%u,%u) of table \"%s\" is not in index \"%s\"", wanted.block, wanted.offset,
                           get_rel_name(index->rd_index->indrelid), RelationGetRelationName(index)),
                    errhint("Please REINDEX it.")));
}

}  // namespace

bool check_heap(IndexCheck* check, Relation table, Snapshot snapshot)
{
    HeapCheck heap = {};
    heap.check = check;
    heap.heap_blocks = RelationGetNumberOfBlocks(table);
    const IndexShape& shape = check->meta.shape;
    if (!is_list(shape.element)) heap.space = static_cast<float*>(palloc(sizeof(float) * shape.dimensions));
    heap.row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp check row", ALLOCSET_DEFAULT_SIZES);
    heap.vector = vector_column(check->index);
    heap.codes = begin_code_check(check->index);
    const Size memory = static_cast<Size>(maintenance_work_mem) * 1024;
    init_tid_set(&heap.indexed, CurrentMemoryContext, memory);
    init_tid_set(&heap.unplaced, CurrentMemoryContext, memory);
    if (!take_rows(&heap) || !take_entries(&heap) || !take_unplaced(&heap)) {
        if (heap.codes != nullptr) end_code_check(heap.codes);
        free_tid_set(&heap.indexed);
        free_tid_set(&heap.unplaced);
        return false;
    }
    IndexInfo* info = BuildIndexInfo(check->index);
    // Scan as a concurrent build does: rows that the snapshot sees.
    info->ii_Concurrent = true;
    info->ii_Unique = false;
    info->ii_ExclusionOps = nullptr;
    TableScanDesc scan = table_beginscan_strat(table, snapshot, 0, nullptr, true, true);
    table_index_build_scan(table, check->index, info, true, false, expect_row, &heap, scan);
    if (heap.codes != nullptr) {
        compare_codes(heap.codes);
        end_code_check(heap.codes);
    }
    free_tid_set(&heap.indexed);
    free_tid_set(&heap.unplaced);
    return true;
}

}  // namespace pgwarp
