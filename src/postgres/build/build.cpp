// ambuild: CREATE INDEX and REINDEX.
#include "postgres/build/build.h"

#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/am/row_norms.h"
#include "postgres/am/row_value.h"
#include "postgres/build/build_arrays.h"
#include "postgres/build/build_phases.h"
#include "postgres/build/build_sample.h"
#include "postgres/client/connection.h"

extern "C" {
#include "access/xact.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
}

namespace pgwarp
{

namespace
{

// The planner's estimate of the number of rows in the heap.
double expected_rows(Relation heap)
{
    BlockNumber pages = 0;
    double tuples = 0;
    double all_visible = 0;
    estimate_rel_size(heap, nullptr, &pages, &tuples, &all_visible);
    return Max(0.0, tuples);
}

// The number of workers that PostgreSQL plans for this build.
int planned_workers(Relation heap, Relation index, const IndexInfo* info)
{
#if PG_VERSION_NUM >= 170000
    (void)heap;
    (void)index;
    return info->ii_ParallelWorkers;
#else
    (void)info;
    return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
#endif
}

// Send every placed row of the heap to the engine, and collect the others.
CollectedRows collect_rows(Relation heap, Relation index, IndexInfo* info, EngineBuild* build)
{
    CollectedRows collected = {};
    send_sample(heap, index, info, build);
    const int workers = planned_workers(heap, index, info);
    if (workers > 0 && engine_available()) {
        if (collect_in_parallel(heap, index, info, build, workers, &collected)) return collected;
    }
    collected.unplaced = begin_unplaced_sort(work_mem, build->shape.attribute_count, nullptr);
    RowCollector* collector = open_collector(index, build, collected.unplaced);
    if (has_included_columns(index)) {
        collector->included = begin_included_sort(index, maintenance_work_mem, nullptr);
    }
    collected.heap_tuples = table_index_build_scan(heap, index, info, true, true, collect_row, collector, nullptr);
    collected.placed = collector->indexed;
    collected.norms = collector->norms;
    collected.included = collector->included;
    close_collector(collector);
    if (collected.included != nullptr) {
        perform_included_sort(collected.included);
        collected.included_totals = included_totals(collected.included);
    }
    return collected;
}

// Report that there are fewer rows than the lists (or the like) that the options ask for.
void warn_about_few_rows(Relation index, const ParameterList& options, double rows)
{
    const char* option = access_method_of(index).spread_option;
    const int64 parts = option != nullptr ? options.get(option, 0) : 0;
    if (parts <= 0 || rows >= static_cast<double>(parts)) return;
    const Alias* alias = find_alias(index);
    if (alias != nullptr && alias->few_rows != nullptr) {
        ereport(NOTICE, (errmsg("%s", alias->few_rows), errdetail("This will cause low recall."),
                         errhint("Drop the index until the table has more data.")));
    } else {
        ereport(NOTICE, (errmsg("index \"%s\" created with fewer rows than %s", RelationGetRelationName(index), option),
                         errdetail("There are %.0f rows for " INT64_FORMAT " %s.", rows, parts, option),
                         errhint("REINDEX when the table has more data.")));
    }
}

// Write the index of a table without placed rows. The engine is not needed.
void write_empty_index(Relation index, const EngineBuild* build, const CollectedRows& collected)
{
    IndexWriter* writer = begin_index(index, MAIN_FORKNUM, build->shape);
    const Calibration no_calibration;
    finish_index(writer, 0, build->options, no_calibration, collected.unplaced);
}

// Have the engine build the arrays, and write the index.
void write_built_index(Relation heap, Relation index, const IndexInfo* info, EngineBuild* build,
                       const CollectedRows& collected)
{
    const BuildRunReply* result = run_engine_build(build);
    IndexWriter* writer = begin_index(index, MAIN_FORKNUM, build->shape);
    write_built_arrays(heap, index, info, planned_workers(heap, index, info), build, result, writer);
    if (collected.included != nullptr) {
        store_included(collected.included, collected.included_totals, result->rows, included_target(writer));
    }
    keep_index_norms(writer, collected.norms);
    finish_index(writer, result->rows, result->options, result->calibration, collected.unplaced);
    end_engine_build(build);
}

void run_build(Relation heap, Relation index, IndexInfo* info, EngineBuild* build, IndexBuildResult* result)
{
    CollectedRows collected = collect_rows(heap, index, info, build);
    warn_about_few_rows(index, build->options, collected.placed);
    if (build->begun) {
        write_built_index(heap, index, info, build, collected);
    } else {
        write_empty_index(index, build, collected);
    }
    result->heap_tuples = collected.heap_tuples;
    result->index_tuples = collected.placed + static_cast<double>(count_unplaced(collected.unplaced));
    end_collected_rows(&collected);
}

// Give the row to the engine. False when such a row has no place.
bool send_row(RowCollector* collector, Tid address, ItemPointer tid, Datum value, const uint64* attributes)
{
    const IndexShape& shape = collector->build->shape;
    RowView row;
    if (collector->list != nullptr) {
        if (!index_row_list(shape, *collector->list, value, &row)) return false;
    } else if (shape.attribute_count > 0) {
        if (!index_row_value(shape, value, collector->vector)) return false;
        row = dense_rows(collector->vector, 1, shape.dimensions);
    } else {
        if (!index_row_value(shape, value, next_row(collector->sink))) return false;
        add_row(collector->sink, tid);
        return true;
    }
    row.attribute_count = shape.attribute_count;
    row.attributes = attributes;
    add_row(collector->sink, address, row);
    return true;
}

// Begin the engine's build with the first row. The callback's context is reset for every row, so the sink and the build
// go into the collector's context.
void begin_sending(Relation index, RowCollector* collector)
{
    MemoryContext row = MemoryContextSwitchTo(GetMemoryChunkContext(collector));
    if (!collector->build->begun) begin_engine_build(collector->build);
    collector->sink = open_row_sink(collector->build->token, collector->build->shape);
    const KeyType key = index_key_type(index);
    collector->list = key.list;
    collector->keeps_norms = keeps_norms(key, collector->build->shape);
    if (collector->list == nullptr)
        collector->vector = static_cast<float*>(palloc(sizeof(float) * collector->build->shape.dimensions));
    MemoryContextSwitchTo(row);
}

}  // namespace

RowCollector* open_collector(Relation index, EngineBuild* build, UnplacedSort* unplaced)
{
    auto* collector = static_cast<RowCollector*>(palloc0(sizeof(RowCollector)));
    collector->build = build;
    collector->unplaced = unplaced;
    open_attribute_coder(index, &collector->coder);
    collector->row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp build row", ALLOCSET_DEFAULT_SIZES);
    return collector;
}

void close_collector(RowCollector* collector)
{
    if (collector->sink != nullptr) close_row_sink(collector->sink);
    MemoryContextDelete(collector->row_context);
    pfree(collector);
}

void collect_row(Relation index, ItemPointer tid, Datum* values, bool* nulls, bool, void* state)
{
    auto* collector = static_cast<RowCollector*>(state);
    const Tid address = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    const int vector = collector->coder.vector;
    uint64 attributes[most_filter_columns];
    MemoryContext outer = MemoryContextSwitchTo(collector->row_context);
    code_attributes(collector->coder, values, nulls, attributes);
    MemoryContextSwitchTo(outer);
    if (nulls[vector]) {
        MemoryContextReset(collector->row_context);
        add_unplaced(collector->unplaced, {address, UnplacedKind::null, attributes});
        return;
    }
    if (collector->sink == nullptr) begin_sending(index, collector);
    outer = MemoryContextSwitchTo(collector->row_context);
    const bool indexed = send_row(collector, address, tid, values[vector], attributes);
    if (collector->keeps_norms) {
        collector->norms = join_ranges(collector->norms, range_of_row(collector->build->shape, values[vector]));
    }
    MemoryContextSwitchTo(outer);
    MemoryContextReset(collector->row_context);
    if (!indexed) {
        add_unplaced(collector->unplaced, {address, UnplacedKind::not_a_number, attributes});
        return;
    }
    collector->indexed += 1;
    if (collector->included == nullptr) return;
    const int keys = IndexRelationGetNumberOfKeyAttributes(index);
    outer = MemoryContextSwitchTo(collector->row_context);
    add_included(collector->included, tid, values + keys, nulls + keys);
    MemoryContextSwitchTo(outer);
    MemoryContextReset(collector->row_context);
}

void end_collected_rows(CollectedRows* collected)
{
    if (collected->included != nullptr) end_included_sort(collected->included);
    collected->included = nullptr;
    end_unplaced_sort(collected->unplaced);
    collected->unplaced = nullptr;
    if (collected->parallel == nullptr) return;
    DestroyParallelContext(collected->parallel);
    ExitParallelMode();
    collected->parallel = nullptr;
}

IndexBuildResult* build_index(Relation heap, Relation index, IndexInfo* info)
{
    if (RelationGetNumberOfBlocks(index) != 0) {
        elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
    }
    auto* build = static_cast<EngineBuild*>(palloc0(sizeof(EngineBuild)));
    build->shape = index_shape(index);
    build->options = index_build_options(index, build->shape);
    build->expected_rows = expected_rows(heap);
    auto* result = static_cast<IndexBuildResult*>(palloc0(sizeof(IndexBuildResult)));
    PG_TRY();
    {
        run_build(heap, index, info, build, result);
    }
    PG_CATCH();
    {
        abandon_engine_build(build);
        PG_RE_THROW();
    }
    PG_END_TRY();
    return result;
}

}  // namespace pgwarp
