#include "postgres/functions/vector_source.h"

#include "postgres/am/element_type.h"

extern "C" {
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

constexpr long rows_at_once = 256;

VectorSource make_source()
{
    VectorSource source = {};
    source.detoasted = AllocSetContextCreate(CurrentMemoryContext, "pgwarp query", ALLOCSET_DEFAULT_SIZES);
    return source;
}

ElementType element_of_one_column(TupleDesc columns, Oid type)
{
    if (columns == nullptr || columns->natts != 1) {
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("the query must return one column"),
                        errdetail("It returns %d.", columns == nullptr ? 0 : columns->natts)));
    }
    const Oid found = getBaseType(TupleDescAttr(columns, 0)->atttypid);
    ElementType element = ElementType::float32;
    if (find_element_type(found, &element)) return element;
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the query must return type %s, not %s", format_type_be(type), format_type_be(found))));
}

// PostgreSQL takes a string without a type for a query. No query begins like a vector or an array.
void refuse_vector_as_query(const char* query)
{
    const char first = query[strspn(query, " \t\r\n")];
    if (first != '[' && first != '{') return;
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the query must be a SELECT, not a vector or an array"),
                    errhint("Write an array of vectors: '{\"[1,2,3]\"}'::vector[].")));
}

// Get the next value of an array or a query; false at the end.
bool next_value(VectorSource* source, Datum* value, bool* null)
{
    if (source->portal == nullptr) {
        if (source->next == source->count) return false;
        *value = source->values[source->next];
        *null = source->nulls[source->next++];
        return true;
    }
    if (source->next == source->count) {
        if (SPI_tuptable != nullptr) SPI_freetuptable(SPI_tuptable);
        SPI_cursor_fetch(source->portal, true, rows_at_once);
        source->next = 0;
        source->count = SPI_processed;
        if (source->count == 0) return false;
    }
    *value = SPI_getbinval(SPI_tuptable->vals[source->next++], SPI_tuptable->tupdesc, 1, null);
    return true;
}

}  // namespace

VectorSource open_array_source(::ArrayType* array)
{
    if (ARR_NDIM(array) > 1) {
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("queries must be an array of one dimension, not %d", ARR_NDIM(array))));
    }
    VectorSource source = make_source();
    int16 length;
    bool by_value;
    char alignment;
    int count;
    get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &alignment);
    deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, alignment, &source.values, &source.nulls, &count);
    source.count = static_cast<uint64>(count);
    if (!find_element_type(ARR_ELEMTYPE(array), &source.element)) {
        elog(ERROR, "queries cannot be of type %s", format_type_be(ARR_ELEMTYPE(array)));
    }
    source.wanted = source.element;
    return source;
}

VectorSource open_text_source(const char* query, Oid type)
{
    refuse_vector_as_query(query);
    VectorSource source = make_source();
    SPIPlanPtr plan = SPI_prepare(query, 0, nullptr);
    if (plan == nullptr) elog(ERROR, "cannot prepare the query: %s", SPI_result_code_string(SPI_result));
    source.portal = SPI_cursor_open(nullptr, plan, nullptr, nullptr, true);
    source.element = element_of_one_column(source.portal->tupDesc, type);
    source.wanted = source.element;
    SPI_tuptable = nullptr;
    return source;
}

bool next_vector(VectorSource* source, SourceVector* vector)
{
    Datum value;
    bool null;
    if (!next_value(source, &value, &null)) return false;
    ++source->number;
    *vector = {0, nullptr};
    if (null) return true;
    MemoryContextReset(source->detoasted);
    MemoryContext outer = MemoryContextSwitchTo(source->detoasted);
    const AnyVector any = read_any_vector(source->element, value);
    if (source->wanted == ElementType::float16 && source->element != source->wanted) {
        auto* rounded = static_cast<float*>(palloc(sizeof(float) * static_cast<Size>(any.dim)));
        copy_floats(any, rounded);
        round_to_element(source->wanted, rounded, any.dim);
        *vector = {any.dim, rounded};
    } else {
        *vector = {any.dim, floats_of(any)};
    }
    MemoryContextSwitchTo(outer);
    return true;
}

void close_source(VectorSource* source)
{
    if (source->portal != nullptr) SPI_cursor_close(source->portal);
    MemoryContextDelete(source->detoasted);
}

}  // namespace pgwarp
