// The included tuples of a merge, which are copied to the places of their rows.
#include "postgres/build/included_sort.h"
#include "postgres/merge/merge_run.h"
#include "postgres/storage/fault_point.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 step_rows = 32768;
constexpr uint64 included_between_delays = 256;
constexpr uint64 checked_rows = 16;

using TupleVisit = void (*)(void* state, Tid tid, const void* tuple, uint32 bytes);

void count_tuple(void* state, Tid, const void*, uint32 bytes)
{
    count_included(static_cast<IncludedTotals*>(state), bytes);
}

void write_tuple(void* state, Tid, const void* tuple, uint32 bytes)
{
    write_included(static_cast<IncludedWriter*>(state), tuple, bytes);
}

void write_sorted(void* state, const void* tuple, uint32 bytes)
{
    write_included(static_cast<IncludedWriter*>(state), tuple, bytes);
}

void sort_tuple(void* state, Tid tid, const void* tuple, uint32 bytes)
{
    add_stored_included(static_cast<IncludedSort*>(state), tid, tuple, bytes);
}

[[noreturn]] void report_changed(const MergeRun* merge)
{
    elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
}

// Heap addresses of rows, read in pieces.
struct RowAddresses {
    uint32 blocks[step_rows];
    uint16 offsets[step_rows];

    Tid at(uint64 i) const { return {blocks[i], offsets[i], 0}; }
};

void read_addresses(const MergeRun* merge, const Directory& directory, uint64 first, uint64 count, RowAddresses* out)
{
    const StoredArray* blocks = find_array(directory, array_tid_block);
    const StoredArray* offsets = find_array(directory, array_tid_offset);
    if (blocks == nullptr || offsets == nullptr) {
        report_corruption(merge->index, metapage_block, "the index has no heap addresses");
    }
    if (read_array(merge->index, directory, *blocks, first * sizeof(uint32), count * sizeof(uint32), out->blocks) ==
            ReadResult::recycled ||
        read_array(merge->index, directory, *offsets, first * sizeof(uint16), count * sizeof(uint16), out->offsets) ==
            ReadResult::recycled) {
        report_changed(merge);
    }
}

// Whether a row stays in the next generation.
bool stays(const MergeRun* merge, uint64 row)
{
    return merge->kind == MergeKind::append || !merge->row_is_dead(row);
}

// Visit the tuples of the rows that stay, in order.
void visit_old(const MergeRun* merge, TupleVisit visit, void* state)
{
    const uint64 rows = merge->counts.rows;
    if (rows == 0) return;
    auto* addresses = static_cast<RowAddresses*>(palloc(sizeof(RowAddresses)));
    auto* tuple = static_cast<char*>(palloc(max_included_bytes));
    for (uint64 first = 0; first < rows; first += step_rows) {
        report_merge("copying rows", first, rows);
        const uint64 count = Min(step_rows, rows - first);
        read_addresses(merge, *merge->directory, first, count, addresses);
        for (uint64 i = 0; i < count; ++i) {
            if (i % included_between_delays == 0) merge_delay_point();
            if (!stays(merge, first + i)) continue;
            const Tid tid = addresses->at(i);
            if (!read_included_row(merge->index, *merge->directory, first + i, tid, tuple)) report_changed(merge);
            visit(state, tid, tuple, static_cast<uint32>(IndexTupleSize(reinterpret_cast<IndexTuple>(tuple))));
        }
    }
    pfree(tuple);
    pfree(addresses);
}

void visit_log(const MergeRun* merge, uint32 log, TupleVisit visit, void* state)
{
    DeltaReader* reader =
        begin_delta_read(merge->index, merge->meta, log, merge->meta.logs[log].start, merge->ends[log]);
    DeltaEntry entry;
    RowView row;
    for (uint64 count = 0; next_delta_row(reader, &entry, &row); ++count) {
        if (count % included_between_delays == 0) merge_delay_point();
        if ((entry.flags & delta_dead) != 0) continue;
        const Tid tid = {entry.block, entry.offset, 0};
        uint32 bytes = 0;
        const char* tuple = delta_included(reader, &bytes);
        if (!included_is_intact(tuple, bytes, tid)) {
            report_corruption(merge->index, merge->meta.logs[log].head,
                              "the checksum of an included tuple of its log does not match");
        }
        visit(state, tid, tuple, bytes);
    }
    if (end_delta_read(reader) == ReadResult::recycled) report_changed(merge);
}

// Visit the tuples of the logs' live rows, in order of the logs.
void visit_new(const MergeRun* merge, TupleVisit visit, void* state)
{
    for (uint32 log = 0; log < delta_log_count; ++log) visit_log(merge, log, visit, state);
}

// Totals of the tuples that stay. Tuples of equal length are counted without reading them.
IncludedTotals count_old(const MergeRun* merge)
{
    IncludedTotals totals = {};
    if (merge->directory->included_at.shape.rows > 0) {
        visit_old(merge, count_tuple, &totals);
        return totals;
    }
    const uint64 rows = merge->kind == MergeKind::append ? merge->counts.rows : merge->old_rows();
    const uint32 bytes = static_cast<uint32>(merge->directory->included.shape.width);
    return {rows, rows * bytes, bytes, bytes};
}

// Write the tuples in order of heap addresses, which is the order that the engine gives all rows in a build.
void write_in_order_of_addresses(const MergeRun* merge, IncludedWriter* writer)
{
    IncludedSort* sort = begin_included_sort(merge->index, maintenance_work_mem, nullptr);
    if (merge->kind == MergeKind::rebuild) visit_old(merge, sort_tuple, sort);
    visit_new(merge, sort_tuple, sort);
    perform_included_sort(sort);
    visit_sorted_included(sort, write_sorted, writer);
    end_included_sort(sort);
}

// Check on a sample that rows have their own tuples.
void check_places(const MergeRun* merge)
{
    const uint64 rows = merge->next.rows;
    auto* address = static_cast<RowAddresses*>(palloc(sizeof(RowAddresses)));
    auto* tuple = static_cast<char*>(palloc(max_included_bytes));
    for (uint64 i = 0; i < checked_rows; ++i) {
        const uint64 row = i * (rows - 1) / (checked_rows - 1);
        read_addresses(merge, merge->next, row, 1, address);
        if (!read_included_row(merge->index, merge->next, row, address->at(0), tuple)) {
            elog(ERROR, "the included columns of index \"%s\" came to wrong rows in a merge",
                 RelationGetRelationName(merge->index));
        }
    }
    pfree(tuple);
    pfree(address);
}

IncludedWriter* begin_writer(MergeRun* merge, const IncludedTotals& fresh)
{
    const IncludedTarget target = {&merge->pages, merge->next.segment_id, &merge->next};
    if (merge->kind == MergeKind::append && can_append_included(*merge->directory, fresh)) {
        return begin_append_included(target, fresh);
    }
    IncludedTotals all = count_old(merge);
    add_totals(&all, fresh);
    IncludedWriter* writer = begin_included(target, all);
    if (merge->kind != MergeKind::rebuild) visit_old(merge, write_tuple, writer);
    return writer;
}

}  // namespace

void carry_included(MergeRun* merge)
{
    if (!has_included_columns(merge->index)) return;
    if (merge->kind == MergeKind::clear) {
        merge->next.included = merge->next.included_at = StoredArray{};
        return;
    }
    IncludedTotals fresh = {};
    visit_new(merge, count_tuple, &fresh);
    if (merge->kind == MergeKind::append && fresh.rows == 0) return;
    IncludedWriter* writer = begin_writer(merge, fresh);
    if (merge->built != nullptr) {
        write_in_order_of_addresses(merge, writer);
    } else {
        visit_new(merge, write_tuple, writer);
    }
    end_included(writer);
    check_places(merge);
    fault_point("merge: included columns written");
}

}  // namespace pgwarp
