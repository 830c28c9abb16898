#include "postgres/functions/sample_rows.h"

#include <cmath>

#include "numeric/hash.h"
#include "postgres/am/element_type.h"
#include "postgres/functions/search_target.h"
#include "postgres/types/any_vector.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_inherits.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

// A sample: rows whose hash lies in [from, to). All hashes are below 1.
struct Share {
    double from;
    double to;
};

bool has_rows(Relation table)
{
    const char kind = table->rd_rel->relkind;
    return kind == RELKIND_RELATION || kind == RELKIND_MATVIEW || kind == RELKIND_PARTITIONED_TABLE;
}

AttrNumber column_of(SampledColumn* sampled, Relation table)
{
    const AttrNumber number = get_attnum(RelationGetRelid(table), sampled->column);
    if (number == InvalidAttrNumber) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("column \"%s\" of relation \"%s\" does not exist",
                                                                  sampled->column, RelationGetRelationName(table))));
    }
    const Oid type =
        number > 0 ? getBaseType(TupleDescAttr(RelationGetDescr(table), number - 1)->atttypid) : InvalidOid;
    if (type == InvalidOid || !find_element_type(type, &sampled->element) || sampled->element == ElementType::bit) {
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of relation \"%s\" is not of type %s", sampled->column,
                               RelationGetRelationName(table), format_type_be(sampled->type))));
    }
    return number;
}

void check_has_rows(Relation table)
{
    if (!has_rows(table)) {
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("\"%s\" is not a table or materialized view", RelationGetRelationName(table))));
    }
    if (RELATION_IS_OTHER_TEMP(table)) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot access temporary tables of other sessions")));
    }
}

double estimated_rows(const SampledColumn* sampled)
{
    double rows = 0;
    ListCell* cell;
    foreach (cell, sampled->tables) {
        Relation table = table_open(lfirst_oid(cell), NoLock);
        BlockNumber pages = 0;
        double tuples = 0;
        double all_visible = 0;
        if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) {
            estimate_rel_size(table, nullptr, &pages, &tuples, &all_visible);
        }
        rows += Max(0.0, tuples);
        table_close(table, NoLock);
    }
    return rows;
}

// A number in [0, 1) that depends only on the seed, the table and the row's tid.
double row_hash(const SampledColumn* sampled, int table, ItemPointer tid)
{
    const uint64 address = uint64{ItemPointerGetBlockNumber(tid)} << 16 | ItemPointerGetOffsetNumber(tid);
    const uint64 place = mix_hash(sampled->seed + static_cast<uint64>(table)) ^ address;
    return static_cast<double>(mix_hash(place) >> 11) * 0x1p-53;
}

void begin_build(SampledColumn* sampled, int dimensions)
{
    EngineBuild* build = sampled->build;
    build->shape.dimensions = static_cast<uint32>(dimensions);
    MemoryContext outer = MemoryContextSwitchTo(sampled->lasting);
    begin_engine_build(build);
    sampled->sink = open_row_sink(build->token, build->shape);
    MemoryContextSwitchTo(outer);
}

void send_row(SampledColumn* sampled, Datum value)
{
    MemoryContext outer = MemoryContextSwitchTo(sampled->row_context);
    const AnyVector vector = read_any_vector(sampled->element, value);
    if (sampled->sink == nullptr) begin_build(sampled, vector.dim);
    check_expected_dim(static_cast<int32>(sampled->sink->dimensions), vector.dim);
    copy_floats(vector, next_row(sampled->sink));
    // The engine orders rows by their tids. Tids of several tables may be equal, so a running number replaces them.
    ItemPointerData order;
    ItemPointerSet(&order, static_cast<BlockNumber>(sampled->sent / 1024),
                   static_cast<OffsetNumber>(sampled->sent % 1024 + 1));
    add_row(sampled->sink, &order);
    ++sampled->sent;
    MemoryContextSwitchTo(outer);
    MemoryContextReset(sampled->row_context);
}

void send_table(SampledColumn* sampled, Oid oid, int number, Share share)
{
    Relation table = table_open(oid, NoLock);
    if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return table_close(table, NoLock);
    check_has_rows(table);
    const AttrNumber column = column_of(sampled, table);
    TupleTableSlot* slot = table_slot_create(table, nullptr);
    TableScanDesc scan = table_beginscan_strat(table, GetActiveSnapshot(), 0, nullptr, true, false);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        bool null = false;
        const Datum value = slot_getattr(slot, column, &null);
        if (null) continue;
        ++sampled->counted;
        const double hash = row_hash(sampled, number, &slot->tts_tid);
        if (hash >= share.from && hash < share.to) send_row(sampled, value);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    table_close(table, NoLock);
}

void send_share(SampledColumn* sampled, Share share)
{
    int number = 0;
    sampled->counted = 0;
    ListCell* cell;
    foreach (cell, sampled->tables) {
        send_table(sampled, lfirst_oid(cell), number++, share);
    }
}

}  // namespace

void open_sampled_column(SampledColumn* sampled)
{
    Relation table = table_open(sampled->table, AccessShareLock);
    check_has_rows(table);
    const AttrNumber column = column_of(sampled, table);
    check_may_read(table, bms_make_singleton(column - FirstLowInvalidHeapAttributeNumber));
    sampled->tables = find_all_inheritors(sampled->table, AccessShareLock, nullptr);
    table_close(table, NoLock);
    sampled->lasting = CurrentMemoryContext;
    sampled->row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp sample row", ALLOCSET_DEFAULT_SIZES);
}

void send_sample(SampledColumn* sampled)
{
    const double estimate = estimated_rows(sampled);
    const auto wanted = static_cast<double>(sampled->wanted);
    const double first = estimate > wanted ? wanted / estimate : 1.0;
    send_share(sampled, {0, first});
    // If the estimate was far off, send the missing rows, as the number of rows is known now.
    if (first < 1 && static_cast<double>(sampled->sent) < wanted / 2 && sampled->counted > sampled->sent) {
        send_share(sampled, {first, Min(1.0, wanted / static_cast<double>(sampled->counted))});
    }
    if (sampled->sink != nullptr) close_row_sink(sampled->sink);
    sampled->sink = nullptr;
}

}  // namespace pgwarp
