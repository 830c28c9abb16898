#include "postgres/functions/column_sample.h"

#include "postgres/types/any_vector.h"

extern "C" {
#include "executor/spi.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

constexpr double wanted_rows = 1000;
// Pages are drawn, not rows: where these pages are fuller than others they give more rows, up to this number.
constexpr double most_rows = 3 * wanted_rows;

// Reads the column of rows in a share of the table's pages, or from the first page on.
void read_rows(Relation table, const char* column, double percent)
{
    StringInfoData query;
    initStringInfo(&query);
    // An index of a parent table has no rows of its children; one of a partitioned table has those of all partitions.
    const char* only = table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ? "" : "ONLY ";
    const char* name =
        quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)), RelationGetRelationName(table));
    appendStringInfo(&query, "SELECT %s FROM %s%s", quote_identifier(column), only, name);
    if (percent < 100) appendStringInfo(&query, " TABLESAMPLE SYSTEM (%g) REPEATABLE (1)", percent);
    if (SPI_execute(query.data, true, static_cast<long>(most_rows)) != SPI_OK_SELECT) {
        elog(ERROR, "could not sample relation \"%s\"", RelationGetRelationName(table));
    }
}

ColumnSample take_values(double percent)
{
    ColumnSample sample = {};
    sample.count = SPI_processed;
    sample.is_whole = percent >= 100 && static_cast<double>(SPI_processed) < most_rows;
    sample.value = static_cast<Datum*>(palloc(sizeof(Datum) * Max(SPI_processed, uint64{1})));
    for (uint64 i = 0; i < SPI_processed; ++i) {
        bool null = false;
        const Datum value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &null);
        if (null) {
            ++sample.nulls;
        } else {
            sample.value[sample.values++] = value;
        }
    }
    return sample;
}

void measure_vector(ElementType element, Datum value, SampledShape* shape, uint64* zeros)
{
    const AnyVector vector = read_any_vector(element, value);
    shape->least_dimensions = shape->least_dimensions == 0 ? vector.dim : Min(shape->least_dimensions, vector.dim);
    shape->most_dimensions = Max(shape->most_dimensions, vector.dim);
    const float* values = floats_of(vector);
    bool zero = true;
    for (uint32 i = 0; i < width_of(vector) && zero; ++i) zero = values[i] == 0;
    *zeros += zero;
    free_any_vector(vector);
}

}  // namespace

ColumnSample sample_column(Relation table, const char* column, double rows)
{
    double percent = rows > 0 ? 100 * wanted_rows / rows : 100;
    read_rows(table, column, percent);
    // The rows may lie on few pages, none of which was drawn.
    if (SPI_processed == 0 && percent < 100) {
        percent = 100;
        read_rows(table, column, percent);
    }
    return take_values(percent);
}

SampledShape measure_sample(const ColumnSample& sample, ElementType element, const ListType* list)
{
    SampledShape shape = {};
    uint64 zeros = 0;
    uint64 words = 0;
    MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "pgwarp sampled row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(row);
    for (uint64 i = 0; i < sample.values; ++i) {
        CHECK_FOR_INTERRUPTS();
        if (list != nullptr) {
            words += list->read_row(sample.value[i]).word_count();
        } else {
            measure_vector(element, sample.value[i], &shape, &zeros);
        }
        MemoryContextReset(row);
    }
    MemoryContextSwitchTo(outer);
    MemoryContextDelete(row);
    const auto values = static_cast<double>(Max(sample.values, uint64{1}));
    shape.zero_share = static_cast<double>(zeros) / values;
    shape.words = static_cast<double>(words) / values;
    return shape;
}

}  // namespace pgwarp
