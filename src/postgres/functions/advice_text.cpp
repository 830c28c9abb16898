// The statement and the warnings of pgwarp_advise().
#include "postgres/functions/index_advice.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

// Values that are wider go to the TOAST table, unless the column forbids it.
constexpr double widest_inline_bytes = 2000;

struct Warnings {
    ArrayBuildState* texts;
};

void warn(Warnings* warnings, const char* text)
{
    warnings->texts =
        accumArrayResult(warnings->texts, CStringGetTextDatum(text), false, TEXTOID, CurrentMemoryContext);
}

const char* table_name(Relation table)
{
    const bool visible = RelationIsVisible(RelationGetRelid(table));
    return quote_qualified_identifier(visible ? nullptr : get_namespace_name(RelationGetNamespace(table)),
                                      RelationGetRelationName(table));
}

const char* column_name(const AdvisedColumn& column)
{
    return quote_identifier(NameStr(column.attribute->attname));
}

bool lacks_dimensions(const AdvisedColumn& column, const IndexAdvice& advice)
{
    return !is_list(advice.of->element) && column.declared_dimensions == 0;
}

// Whether the index has to be on an expression: a column of a domain has no dimensions of its own.
bool needs_cast(const AdvisedColumn& column, const IndexAdvice& advice)
{
    return !is_list(advice.of->element) && column.type != column.attribute->atttypid;
}

const char* cast_column(const AdvisedColumn& column, const IndexAdvice& advice)
{
    return psprintf("%s::%s", column_name(column), format_type_with_typemod(column.type, advice.dimensions));
}

void warn_of_shape(const AdvisedColumn& column, const IndexAdvice& advice, Warnings* warnings)
{
    if (needs_cast(column, advice) && advice.dimensions > 0) {
        warn(warnings, psprintf("the column is of a domain: its index serves queries that order by %s",
                                cast_column(column, advice)));
    }
    if (!lacks_dimensions(column, advice)) return;
    const SampledShape& sampled = advice.sampled;
    if (sampled.most_dimensions == 0) {
        warn(warnings, "the column's type has no dimensions, and there is no row that tells them");
    } else if (sampled.least_dimensions != sampled.most_dimensions) {
        warn(warnings, psprintf("rows have from %d to %d dimensions; an index takes rows of the same",
                                sampled.least_dimensions, sampled.most_dimensions));
    } else {
        warn(warnings,
             psprintf("the column's type has no dimensions; an index needs them, and all sampled rows have %d",
                      sampled.least_dimensions));
    }
}

void warn_of_rows(const AdvisedColumn& column, const IndexAdvice& advice, Warnings* warnings)
{
    if (!column.counted) warn(warnings, "the number of rows is a guess until VACUUM or ANALYZE has counted them");
    if (column.rows < 1) {
        warn(warnings, "the table is empty: load the rows first");
    } else if (column.rows < fewest_indexed_rows) {
        warn(warnings,
             psprintf("a sequential scan of %.0f rows takes about a millisecond: no index is needed", column.rows));
    }
    if (column.sample.nulls > 0) {
        warn(warnings,
             psprintf("%.1f %% of the sampled rows are NULL; searches return them after all others",
                      100.0 * static_cast<double>(column.sample.nulls) / static_cast<double>(column.sample.count)));
    }
    if (advice.of->metric == Metric::cosine && advice.sampled.zero_share > 0) {
        warn(warnings,
             psprintf("%.1f %% of the sampled vectors are zero, and have no cosine distance; searches return them last",
                      100 * advice.sampled.zero_share));
    }
}

// The width of a value, as PostgreSQL stores it without compression.
double value_bytes(const IndexAdvice& advice)
{
    if (advice.of->element == ElementType::float16) return 2.0 * advice.dimensions;
    if (advice.of->element == ElementType::float32) return 4.0 * advice.dimensions;
    return 0;
}

void warn_of_storage(const AdvisedColumn& column, const IndexAdvice& advice, Warnings* warnings)
{
    const char storage = column.attribute->attstorage;
    if (storage == TYPSTORAGE_PLAIN && value_bytes(advice) > MaxHeapTupleSize) {
        warn(warnings, "storage is PLAIN: rows of this width do not fit into a page; SET STORAGE EXTERNAL");
    }
    if (value_bytes(advice) <= widest_inline_bytes) return;
    if (storage == TYPSTORAGE_EXTENDED || storage == TYPSTORAGE_MAIN) {
        warn(warnings,
             "storage allows compression, which costs time and saves little on vectors; SET STORAGE EXTERNAL");
    }
}

void warn_of_engine(const AdvisedColumn& column, const IndexAdvice& advice, Warnings* warnings)
{
    const AdvisedEngine& engine = column.engine;
    if (!engine.reached) warn(warnings, "pgwarp-engine could not be reached, and without it no index is built");
    if (!engine.has_gpu) {
        warn(warnings, psprintf("there is no GPU: %d threads of the CPU build and search", engine.threads));
    } else if (advice.known && advice.gpu_bytes == 0) {
        warn(warnings, "the CPU serves such an index");
    }
    const double needed = advice.gpu_bytes > 0 ? advice.gpu_bytes : advice.engine_bytes;
    if (advice.known && engine.memory > 0 && needed > engine.memory) {
        warn(warnings, psprintf("the engine may use %.0f MB (pgwarp.engine_memory), and the index takes %.0f MB",
                                engine.memory / 1e6, needed / 1e6));
    }
    if (max_parallel_maintenance_workers == 0) {
        warn(warnings, "max_parallel_maintenance_workers is 0: one process reads the table and writes the index");
    }
}

}  // namespace

const char* advised_statement(const AdvisedColumn& column, const IndexAdvice& advice)
{
    if (lacks_dimensions(column, advice) && advice.dimensions == 0) return nullptr;
    StringInfoData statement;
    initStringInfo(&statement);
    const char* table = table_name(column.table);
    const bool on_cast = needs_cast(column, advice);
    if (lacks_dimensions(column, advice) && !on_cast) {
        appendStringInfo(&statement, "ALTER TABLE %s ALTER %s TYPE %s; ", table, column_name(column),
                         format_type_with_typemod(column.attribute->atttypid, advice.dimensions));
    }
    appendStringInfo(&statement, "CREATE INDEX ON %s USING %s (%s", table, quote_identifier(advice.of->method->name),
                     on_cast ? psprintf("(%s)", cast_column(column, advice)) : column_name(column));
    if (!advice.of->is_default) appendStringInfo(&statement, " %s", advice.of->name);
    appendStringInfoString(&statement, ")");
    return statement.data;
}

Datum advised_warnings(const AdvisedColumn& column, const IndexAdvice& advice)
{
    Warnings warnings = {initArrayResult(TEXTOID, CurrentMemoryContext, false)};
    warn_of_shape(column, advice, &warnings);
    warn_of_rows(column, advice, &warnings);
    warn_of_storage(column, advice, &warnings);
    warn_of_engine(column, advice, &warnings);
    return makeArrayResult(warnings.texts, CurrentMemoryContext);
}

}  // namespace pgwarp
