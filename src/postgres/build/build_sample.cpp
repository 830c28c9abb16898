// Scans some pages of the heap as the build scans all of them, so that a partial index, or one of an expression, is
// trained on its own rows.
#include "postgres/build/build_sample.h"

#include <cmath>

#include "numeric/hash.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/row_value.h"
#include "postgres/build/build_phases.h"
#include "postgres/client/connection.h"
#include "protocol/build_sample.h"

extern "C" {
#include "access/tableam.h"
#include "pgstat.h"
}

namespace pgwarp
{

namespace
{

constexpr BlockNumber fewest_blocks = 1024;  // of a heap that is worth a sample
constexpr BlockNumber counted_blocks = 64;
// Rows of one page are often alike. So one of this many rows of a page is taken, of as many more pages.
constexpr uint64 rows_per_taken = 2;
constexpr double spare = 1.1;  // times as many pages as the wanted rows need on average
constexpr uint64 sample_piece_bytes = UINT64CONST(1) << 20;

// Sampled rows on their way to the engine.
struct SampleSink {
    const EngineBuild* build;
    MemoryContext row_context;
    char* rows;  // [capacity][row_bytes]
    uint64 row_bytes;
    uint64 capacity;
    uint64 count;
    uint64 sent;
};

void count_row(Relation index, ItemPointer, Datum*, bool* nulls, bool, void* state)
{
    if (!nulls[vector_column(index)]) *static_cast<uint64*>(state) += 1;
}

void flush_sample(SampleSink* sink)
{
    if (sink->count == 0) return;
    const ArrayShape shape =
        make_array_shape(array_sample_rows, ArrayType::u8, sink->count, static_cast<uint32>(sink->row_bytes));
    give_array(sink->build, shape, 0, sink->rows, sink->count * sink->row_bytes);
    sink->sent += sink->count;
    sink->count = 0;
}

// An IndexBuildCallback whose state is a SampleSink.
void take_row(Relation index, ItemPointer tid, Datum* values, bool* nulls, bool, void* state)
{
    auto* sink = static_cast<SampleSink*>(state);
    const Tid address = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    const int vector = vector_column(index);
    if (nulls[vector] || mix_hash(uint64{address.block} << 16 | address.offset) % rows_per_taken != 0) return;
    char* const out = sink->rows + sink->count * sink->row_bytes;
    memcpy(out, &address, sizeof(address));
    MemoryContext outer = MemoryContextSwitchTo(sink->row_context);
    const bool indexed =
        index_row_value(sink->build->shape, values[vector], reinterpret_cast<float*>(out + sizeof(address)));
    MemoryContextSwitchTo(outer);
    MemoryContextReset(sink->row_context);
    if (indexed && ++sink->count == sink->capacity) flush_sample(sink);
}

// The counters of pg_stat_user_tables that scans raise. Null: nothing is counted.
struct ScanCounters {
    PgStat_Counter* scans;
    PgStat_Counter* rows;
};

ScanCounters counters_of(Relation heap)
{
    if (!pgstat_should_count_relation(heap)) return {};
#if PG_VERSION_NUM >= 160000
    PgStat_TableCounts* const counts = &heap->pgstat_info->counts;
    return {&counts->numscans, &counts->tuples_returned};
#else
    PgStat_TableCounts* const counts = &heap->pgstat_info->t_counts;
    return {&counts->t_numscans, &counts->t_tuples_returned};
#endif
}

// Scans a page. Rows of transactions in progress are taken as they are, without a wait: the build itself looks at them
// again. A concurrent build scans by a snapshot, which never waits, and which PostgreSQL asserts to be used without
// that. PostgreSQL counts a scan of the table, which is taken back: ANALYZE counts none for its sample either.
void scan_page(Relation heap, Relation index, IndexInfo* info, BlockNumber block, IndexBuildCallback take, void* state)
{
    const bool any_visible = !info->ii_Concurrent;
    const ScanCounters counters = counters_of(heap);
    const bool counted = counters.scans != nullptr;
    const PgStat_Counter scans = counted ? *counters.scans : 0;
    const PgStat_Counter rows = counted ? *counters.rows : 0;
    table_index_build_range_scan(heap, index, info, false, any_visible, false, block, 1, take, state, nullptr);
    if (!counted) return;
    *counters.scans = scans;
    *counters.rows = rows;
}

// Scans `some` of the heap's pages, evenly spread.
void scan_pages(Relation heap, Relation index, IndexInfo* info, BlockNumber some, IndexBuildCallback take, void* state)
{
    const uint64 all = RelationGetNumberOfBlocks(heap);
    for (BlockNumber i = 0; i < some; ++i) {
        CHECK_FOR_INTERRUPTS();
        report_build_phase("sampling rows", i, some);
        scan_page(heap, index, info, static_cast<BlockNumber>(all * i / some), take, state);
    }
}

// Estimates the number of the heap's rows that the index will have.
double count_rows(Relation heap, Relation index, IndexInfo* info)
{
    uint64 rows = 0;
    scan_pages(heap, index, info, counted_blocks, count_row, &rows);
    return static_cast<double>(rows) * RelationGetNumberOfBlocks(heap) / counted_blocks;
}

// Sends sampled rows; returns their number.
uint64 send_rows(Relation heap, Relation index, IndexInfo* info, const EngineBuild* build)
{
    const double blocks = RelationGetNumberOfBlocks(heap);
    const double rows = spare * rows_per_taken * static_cast<double>(build->wanted_sample);
    const auto some = static_cast<BlockNumber>(Min(blocks, ceil(rows * blocks / build->expected_rows)));
    SampleSink sink = {};
    sink.build = build;
    sink.row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp sampled row", ALLOCSET_DEFAULT_SIZES);
    sink.row_bytes = sizeof(Tid) + sizeof(float) * uint64{build->shape.dimensions};
    sink.capacity = Max(sample_piece_bytes / sink.row_bytes, uint64{1});
    sink.rows = static_cast<char*>(palloc(sink.capacity * sink.row_bytes));
    scan_pages(heap, index, info, some, take_row, &sink);
    flush_sample(&sink);
    pfree(sink.rows);
    MemoryContextDelete(sink.row_context);
    return sink.sent;
}

// Ends the sample: the engine is trained.
void end_sample(const EngineBuild* build, uint64 sent)
{
    ereport(DEBUG1,
            (errmsg("training on a sample of " UINT64_FORMAT " rows of about %.0f", sent, build->expected_rows)));
    report_build_phase("training tree", 0, 1);
    const auto rows = static_cast<uint64>(build->expected_rows);
    give_array(build, make_array_shape(array_sample_of, ArrayType::u64, 1, 1), 0, &rows, sizeof(rows));
}

// Sends a sample where the index has enough rows for one.
void count_and_sample(Relation heap, Relation index, IndexInfo* info, EngineBuild* build)
{
    // The planner knows little of a table that was never analyzed, and nothing of a partial index.
    build->expected_rows = count_rows(heap, index, info);
    end_engine_build(build);
    if (build->expected_rows < 1) return;
    begin_engine_build(build);
    if (build->wanted_sample == 0) return;
    // With too few rows the engine gathers all.
    const uint64 sent = send_rows(heap, index, info, build);
    if (sent >= build->wanted_sample / 2) end_sample(build, sent);
}

}  // namespace

void send_sample(Relation heap, Relation index, IndexInfo* info, EngineBuild* build)
{
    if (RelationGetNumberOfBlocks(heap) < fewest_blocks || !engine_available()) return;
    begin_engine_build(build);
    if (build->wanted_sample == 0) return;
    count_and_sample(heap, index, info, build);
    report_build_phase("reading rows", 0, 0);
}

}  // namespace pgwarp
