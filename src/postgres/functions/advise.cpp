// pgwarp_advise(table, column, operator): the indexes that a column could have, estimated before one is built.
#include <unistd.h>

#include <cmath>

#include "postgres/client/connection.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/engine_status.h"
#include "postgres/functions/index_advice.h"
#include "postgres/functions/search_target.h"
#include "postgres/settings.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "nodes/bitmapset.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

constexpr int advice_columns = 14;

// The memory context that rows of the result are made in, beside that of SPI.
struct AdviceRows {
    Tuplestorestate* store;
    TupleDesc columns;
};

Form_pg_attribute find_column(Relation table, const char* name)
{
    const AttrNumber number = get_attnum(RelationGetRelid(table), name);
    if (number <= 0) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("column \"%s\" of relation \"%s\" does not exist",
                                                                  name, RelationGetRelationName(table))));
    }
    return TupleDescAttr(RelationGetDescr(table), number - 1);
}

void check_table(Relation table)
{
    const char kind = table->rd_rel->relkind;
    if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW && kind != RELKIND_PARTITIONED_TABLE) {
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("\"%s\" is not a table or materialized view", RelationGetRelationName(table))));
    }
    if (RELATION_IS_OTHER_TEMP(table)) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot access temporary tables of other sessions")));
    }
}

// Adds the rows of a table, or of its partitions.
void count_rows(AdvisedColumn* column)
{
    List* tables = list_make1_oid(RelationGetRelid(column->table));
    if (column->table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) {
        tables = find_all_inheritors(RelationGetRelid(column->table), AccessShareLock, nullptr);
    }
    column->counted = true;
    ListCell* cell;
    foreach (cell, tables) {
        Relation part = table_open(lfirst_oid(cell), NoLock);
        if (part->rd_rel->relkind != RELKIND_PARTITIONED_TABLE && part->rd_rel->relkind != RELKIND_FOREIGN_TABLE) {
            BlockNumber pages = 0;
            double tuples = 0;
            double all_visible = 0;
            estimate_rel_size(part, nullptr, &pages, &tuples, &all_visible);
            column->rows += Max(0.0, tuples);
            if (part->rd_rel->reltuples < 0 && pages > 0) column->counted = false;
        }
        table_close(part, NoLock);
    }
}

// Starts the engine if need be, as a build would.
AdvisedEngine look_at_engine()
{
    AdvisedEngine engine = {};
    char* why = nullptr;
    engine.reached = try_open_engine(&why);
    const StatusReply* status = engine.reached ? fetch_status() : nullptr;
    engine.has_gpu = engine_has_gpu();
    engine.memory = status != nullptr ? static_cast<double>(status->memory_allowed) : 0;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    engine.threads = setting_engine_threads > 0 ? setting_engine_threads : static_cast<int>(Max(1L, cores));
    return engine;
}

IndexAdvice* advise_classes(const AdvisedColumn& column, List* classes)
{
    const int count = list_length(classes);
    auto* advices = static_cast<IndexAdvice*>(palloc0(sizeof(IndexAdvice) * static_cast<size_t>(count)));
    for (int i = 0; i < count; ++i) {
        advices[i] = advise_class(column, static_cast<const AdvisedClass*>(list_nth(classes, i)));
    }
    recommend(column, advices, count);
    return advices;
}

Datum seconds_interval(double seconds)
{
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = static_cast<TimeOffset>(std::ceil(seconds * 1000)) * 1000;
    return IntervalPGetDatum(interval);
}

Datum whole(double number)
{
    return Int64GetDatum(static_cast<int64>(number + 0.5));
}

void put_advice(const AdvisedColumn& column, const IndexAdvice& advice, AdviceRows rows)
{
    Datum values[advice_columns] = {};
    bool nulls[advice_columns] = {};
    values[0] = CStringGetTextDatum(advice.of->method->name);
    values[1] = CStringGetTextDatum(advice.of->name);
    values[2] = CStringGetTextDatum(advice.of->operator_name);
    values[3] = BoolGetDatum(advice.is_recommended);
    values[4] = BoolGetDatum(advice.is_exact);
    values[5] = whole(advice.rows);
    values[6] = Int32GetDatum(advice.dimensions);
    nulls[6] = advice.dimensions == 0;
    values[7] = whole(advice.index_bytes);
    values[8] = whole(advice.engine_bytes);
    values[9] = whole(advice.gpu_bytes);
    values[10] = seconds_interval(advice.build_seconds);
    values[11] = whole(advice.compared_rows);
    for (int i = 7; i <= 11; ++i) nulls[i] = !advice.known;
    const char* statement = advised_statement(column, advice);
    values[12] = statement != nullptr ? CStringGetTextDatum(statement) : Datum{0};
    nulls[12] = statement == nullptr;
    values[13] = advised_warnings(column, advice);
    tuplestore_putvalues(rows.store, rows.columns, values, nulls);
}

// The recommended one comes first.
void put_advices(const AdvisedColumn& column, const IndexAdvice* advices, int count, AdviceRows rows)
{
    for (const bool recommended : {true, false}) {
        for (int i = 0; i < count; ++i) {
            if (advices[i].is_recommended == recommended) put_advice(column, advices[i], rows);
        }
    }
}

[[noreturn]] void refuse_type(const AdvisedColumn& column)
{
    const char* type = format_type_be(column.attribute->atttypid);
    const char* operators = list_advised_operators(column.type);
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    column.operator_name != nullptr
                        ? errmsg("no index orders values of type %s by %s", type, column.operator_name)
                        : errmsg("no index orders values of type %s by a distance", type),
                    operators != nullptr ? errhint("Its operators, to be named without a schema: %s.", operators)
                                         : errhint("Columns can be of a type such as vector, halfvec, sparsevec, bit, "
                                                   "text, arrays, tsvector or attributes.")));
}

void advise(AdvisedColumn* column, AdviceRows rows)
{
    List* classes = find_advised_classes(column->type, column->operator_name);
    if (classes == NIL) refuse_type(*column);
    count_rows(column);
    column->engine = look_at_engine();
    SPI_connect();
    column->sample = sample_column(column->table, NameStr(column->attribute->attname), column->rows);
    if (column->sample.is_whole) {
        column->rows = static_cast<double>(column->sample.count);
        column->counted = true;
    }
    put_advices(*column, advise_classes(*column, classes), list_length(classes), rows);
    SPI_finish();
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_advise)
{
    using namespace pgwarp;
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) {
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("table and column must not be NULL")));
    }
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    if (info->setDesc->natts != advice_columns) elog(ERROR, "pgwarp_advise() has another row type");
    AdvisedColumn column = {};
    column.table = table_open(PG_GETARG_OID(0), AccessShareLock);
    check_table(column.table);
    column.attribute = find_column(column.table, NameStr(*PG_GETARG_NAME(1)));
    int32 modifier = column.attribute->atttypmod;
    column.type = getBaseTypeAndTypmod(column.attribute->atttypid, &modifier);
    column.declared_dimensions = Max(modifier, 0);
    check_may_read(column.table, bms_make_singleton(column.attribute->attnum - FirstLowInvalidHeapAttributeNumber));
    column.operator_name = PG_ARGISNULL(2) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(2));
    advise(&column, {info->setResult, info->setDesc});
    table_close(column.table, NoLock);
    return static_cast<Datum>(0);
}
