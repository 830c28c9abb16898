// Reads sets, and compares them.
#include "postgres/types/set_value.h"

#include <algorithm>

#include "postgres/types/list_row.h"

extern "C" {
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "tsearch/ts_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

// Numbers in memory of their own, at first in any order and with duplicates.
struct Elements {
    uint64* numbers;
    Size count;
};

Elements make_elements(Size most)
{
    return {static_cast<uint64*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * Max(most, Size{1}))), 0};
}

uint64 hash_of(const char* bytes, Size length)
{
    return DatumGetUInt64(
        hash_any_extended(reinterpret_cast<const unsigned char*>(bytes), static_cast<int>(length), 0));
}

// Keeps the order of signed integers.
uint64 number_of(int64 value)
{
    return static_cast<uint64>(value) ^ uint64 { 1 } << 63;
}

// The form of elements of arrays, and the number of an element.
struct Int2Form {
    static constexpr int length = sizeof(int16);
    static constexpr bool by_value = true;
    static constexpr char alignment = TYPALIGN_SHORT;
    static uint64 number(Datum element) { return number_of(DatumGetInt16(element)); }
};

struct Int4Form {
    static constexpr int length = sizeof(int32);
    static constexpr bool by_value = true;
    static constexpr char alignment = TYPALIGN_INT;
    static uint64 number(Datum element) { return number_of(DatumGetInt32(element)); }
};

struct Int8Form {
    static constexpr int length = sizeof(int64);
    static constexpr bool by_value = FLOAT8PASSBYVAL;
    static constexpr char alignment = TYPALIGN_DOUBLE;
    static uint64 number(Datum element) { return number_of(DatumGetInt64(element)); }
};

struct TextForm {
    static constexpr int length = -1;
    static constexpr bool by_value = false;
    static constexpr char alignment = TYPALIGN_INT;
    static uint64 number(Datum element)
    {
        // Elements of arrays are neither compressed nor out of line.
        auto* text = reinterpret_cast<varlena*>(DatumGetPointer(element));
        return hash_of(VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
    }
};

// Trailing blanks of char(n) are padding.
struct PaddedForm : TextForm {
    static uint64 number(Datum element)
    {
        auto* text = reinterpret_cast<varlena*>(DatumGetPointer(element));
        const int length = bpchartruelen(VARDATA_ANY(text), static_cast<int>(VARSIZE_ANY_EXHDR(text)));
        return hash_of(VARDATA_ANY(text), static_cast<Size>(length));
    }
};

template <class Form>
Elements elements_in(::ArrayType* array)
{
    Datum* values = nullptr;
    bool* nulls = nullptr;
    int count = 0;
    deconstruct_array(array, ARR_ELEMTYPE(array), Form::length, Form::by_value, Form::alignment, &values, &nulls,
                      &count);
    Elements elements = make_elements(static_cast<Size>(count));
    for (int i = 0; i < count; ++i) {
        if (!nulls[i]) elements.numbers[elements.count++] = Form::number(values[i]);
    }
    if (count > 0) pfree(values);
    if (count > 0) pfree(nulls);
    return elements;
}

// `type`: of the elements, or the base type of their domain.
Elements elements_of_type(::ArrayType* array, Oid type)
{
    switch (type) {
        case INT2OID:
            return elements_in<Int2Form>(array);
        case INT4OID:
            return elements_in<Int4Form>(array);
        case INT8OID:
            return elements_in<Int8Form>(array);
        case TEXTOID:
        case VARCHAROID:
            return elements_in<TextForm>(array);
        case BPCHAROID:
            return elements_in<PaddedForm>(array);
        default:
            break;
    }
    const Oid base = getBaseType(type);
    if (base != type) return elements_of_type(array, base);
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("arrays of type %s are not compared as sets", format_type_be(type)),
                    errhint("Cast them to an array of integers or of text.")));
}

template <SetKind kind>
Elements elements_of(Datum value);

template <>
Elements elements_of<SetKind::array>(Datum value)
{
    auto* array = reinterpret_cast<::ArrayType*>(PG_DETOAST_DATUM(value));
    const Elements elements = elements_of_type(array, ARR_ELEMTYPE(array));
    if (reinterpret_cast<Pointer>(array) != DatumGetPointer(value)) pfree(array);
    return elements;
}

template <>
Elements elements_of<SetKind::lexemes>(Datum value)
{
    TSVector document = DatumGetTSVector(value);
    const WordEntry* entries = ARRPTR(document);
    const char* bytes = STRPTR(document);
    Elements elements = make_elements(static_cast<Size>(document->size));
    for (int i = 0; i < document->size; ++i) {
        elements.numbers[elements.count++] = hash_of(bytes + entries[i].pos, entries[i].len);
    }
    if (reinterpret_cast<Pointer>(document) != DatumGetPointer(value)) pfree(document);
    return elements;
}

// Returns the distinct elements in ascending order.
template <SetKind kind>
Elements distinct_elements(Datum value)
{
    Elements elements = elements_of<kind>(value);
    uint64* end = elements.numbers + elements.count;
    if (!std::is_sorted(elements.numbers, end)) std::sort(elements.numbers, end);
    elements.count = static_cast<Size>(std::unique(elements.numbers, end) - elements.numbers);
    return elements;
}

void check_element_count(Size count)
{
    if (count <= max_set_elements) return;
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("set of %zu elements is too large", count),
                    errdetail("It may have %u.", max_set_elements),
                    errhint("Compare a part of it; an index may be on an expression that makes the part.")));
}

uint32 common_elements(const Elements& a, const Elements& b)
{
    uint32 common = 0;
    for (Size i = 0, j = 0; i < a.count && j < b.count;) {
        const uint64 left = a.numbers[i];
        const uint64 right = b.numbers[j];
        if (left == right) ++common;
        if (left <= right) ++i;
        if (right <= left) ++j;
    }
    return common;
}

double distance_of_counts(Metric metric, uint32 common, Size a, Size b)
{
    return metric == Metric::overlap ? overlap_distance(common) : jaccard_distance_of_sets(common, a, b);
}

}  // namespace

template <SetKind kind>
RowView SetsOf<kind>::read_row(Datum value)
{
    const Elements elements = distinct_elements<kind>(value);
    check_element_count(elements.count);
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * set_words * Max(elements.count, Size{1})));
    for (Size i = 0; i < elements.count; ++i) write_part_number(elements.numbers[i], words + i * set_words);
    pfree(elements.numbers);
    return one_list_row(words, static_cast<uint32>(elements.count * set_words));
}

template <SetKind kind>
bool SetsOf<kind>::can_read(Datum value)
{
    const Elements elements = distinct_elements<kind>(value);
    pfree(elements.numbers);
    return elements.count <= max_set_elements;
}

template <SetKind kind>
double SetsOf<kind>::row_distance(Metric metric, const RowView& query, Datum value)
{
    const RowView row = read_row(value);
    const uint32 common = count_common(query.list(0), row.list(0));
    return distance_of_counts(metric, common, query.list(0).size() / set_words, row.list(0).size() / set_words);
}

template <SetKind kind>
double SetsOf<kind>::distance(Metric metric, Datum a, Datum b)
{
    const Elements left = distinct_elements<kind>(a);
    const Elements right = distinct_elements<kind>(b);
    check_element_count(left.count);
    check_element_count(right.count);
    const double distance = distance_of_counts(metric, common_elements(left, right), left.count, right.count);
    pfree(left.numbers);
    pfree(right.numbers);
    return distance;
}

template struct SetsOf<SetKind::array>;
template struct SetsOf<SetKind::lexemes>;

}  // namespace pgwarp
