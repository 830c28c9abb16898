#include "postgres/scan/filter_keys.h"

#include "postgres/am/attribute_code.h"
#include "postgres/scan/code_ranges.h"
#include "protocol/attribute_codes.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_proc.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

// A filter column of the index, and the codes that pass the keys read so far.
struct KeyColumn {
    CodeForm form;
    Oid collation;
    Oid type;
    bool bounded;
    CodeRanges passing;
};

// The SQL type of a comparison's left side.
Oid left_type(Oid function)
{
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return InvalidOid;
    const auto* procedure = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    const Oid type = procedure->pronargs == 2 ? procedure->proargtypes.values[0] : InvalidOid;
    ReleaseSysCache(tuple);
    return type;
}

// The form of a key's argument. None where codes do not tell the key's result: the planner matches operators whatever
// the type of the column is, so a column may be compared as a type that its own is binary coercible to.
CodeForm argument_form(const KeyColumn& column, const ScanKeyData& key)
{
    const Oid type = OidIsValid(key.sk_subtype) ? key.sk_subtype : column.type;
    const CodeForm form = code_form(type);
    const bool known = code_form(left_type(key.sk_func.fn_oid)) == column.form && are_comparable(column.form, form);
    const bool ordered = is_ordered(form) || form == CodeForm::enumeration;
    if (!known || (key.sk_strategy != BTEqualStrategyNumber && !ordered)) return CodeForm::none;
    return form;
}

// Adds the enum's labels that compare so with a value, by the order that the labels have now.
void add_labels(const KeyColumn& column, const ScanKeyData& key, Datum value, CodeRanges* ranges)
{
    Relation catalog = table_open(EnumRelationId, AccessShareLock);
    ScanKeyData of_type;
    ScanKeyInit(&of_type, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(column.type));
    SysScanDesc scan = systable_beginscan(catalog, EnumTypIdLabelIndexId, true, nullptr, 1, &of_type);
    auto* function = const_cast<FmgrInfo*>(&key.sk_func);
    while (HeapTuple tuple = systable_getnext(scan)) {
        const Oid label = reinterpret_cast<Form_pg_enum>(GETSTRUCT(tuple))->oid;
        if (DatumGetBool(FunctionCall2Coll(function, key.sk_collation, ObjectIdGetDatum(label), value))) {
            add_range(ranges, code_of_bits(label), code_of_bits(label));
        }
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

// Adds the codes of the values that compare so with a value. With `tied`, other values may have its code.
void add_codes(StrategyNumber strategy, uint64 code, bool tied, CodeRanges* ranges)
{
    switch (strategy) {
        case BTLessStrategyNumber:
            if (tied || code > 0) add_range(ranges, 0, tied ? code : code - 1);
            break;
        case BTLessEqualStrategyNumber:
            add_range(ranges, 0, code);
            break;
        case BTEqualStrategyNumber:
            add_range(ranges, code, code);
            break;
        case BTGreaterEqualStrategyNumber:
            add_range(ranges, code, largest_code);
            break;
        case BTGreaterStrategyNumber:
            add_range(ranges, tied ? code : code + 1, largest_code);
            break;
        default:
            elog(ERROR, "unknown strategy %d", strategy);
    }
}

void add_comparison(const KeyColumn& column, const ScanKeyData& key, CodeForm form, Datum value, CodeRanges* ranges,
                    bool* recheck)
{
    if (form == CodeForm::enumeration && key.sk_strategy != BTEqualStrategyNumber) {
        return add_labels(column, key, value, ranges);
    }
    const uint64 code = code_of_value(form, column.collation, value);
    const bool tied = may_tie(form) || is_tied_code(code);
    add_codes(key.sk_strategy, code, tied, ranges);
    if (tied) *recheck = true;
}

// Adds the codes that any element of the key's array lets pass.
void add_any(const KeyColumn& column, const ScanKeyData& key, CodeForm form, CodeRanges* ranges, bool* recheck)
{
    auto* array = reinterpret_cast<::ArrayType*>(PG_DETOAST_DATUM(key.sk_argument));
    int16 length = 0;
    bool by_value = false;
    char alignment = 0;
    get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &alignment);
    Datum* values = nullptr;
    bool* nulls = nullptr;
    int count = 0;
    deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, alignment, &values, &nulls, &count);
    for (int i = 0; i < count; ++i) {
        CHECK_FOR_INTERRUPTS();
        if (!nulls[i]) add_comparison(column, key, form, values[i], ranges, recheck);
    }
}

// The codes that pass a key. False where codes do not tell.
bool read_key(const KeyColumn& column, const ScanKeyData& key, CodeRanges* ranges, bool* recheck)
{
    if ((key.sk_flags & SK_SEARCHNULL) != 0) {
        add_range(ranges, null_code, null_code);
        return true;
    }
    if ((key.sk_flags & SK_SEARCHNOTNULL) != 0) {
        add_range(ranges, 0, largest_code);
        return true;
    }
    if ((key.sk_flags & SK_ISNULL) != 0) return true;
    const CodeForm form = argument_form(column, key);
    if (form == CodeForm::none) return false;
    if ((key.sk_flags & SK_SEARCHARRAY) != 0) {
        add_any(column, key, form, ranges, recheck);
    } else {
        add_comparison(column, key, form, key.sk_argument, ranges, recheck);
    }
    return true;
}

void narrow(KeyColumn* column, CodeRanges* ranges)
{
    sort_ranges(ranges);
    column->passing = column->bounded ? intersect_ranges(column->passing, *ranges) : *ranges;
    column->bounded = true;
}

uint64 count_words(const KeyColumn* columns, int count)
{
    uint64 words = 1;
    for (int i = 0; i < count; ++i) {
        if (columns[i].bounded) words += 1 + 2 * uint64{columns[i].passing.count};
    }
    return words;
}

// Widens the sets until the predicate is short enough. False where it need not be widened.
bool shorten(KeyColumn* columns, int count)
{
    bool widened = false;
    while (count_words(columns, count) > max_predicate_words) {
        KeyColumn* longest = columns;
        for (int i = 1; i < count; ++i) {
            if (columns[i].passing.count > longest->passing.count) longest = &columns[i];
        }
        widen_ranges(&longest->passing);
        widened = true;
    }
    return widened;
}

void write_predicate(const KeyColumn* columns, int count, FilterKeys* out)
{
    auto* words = static_cast<uint64*>(palloc(sizeof(uint64) * count_words(columns, count)));
    uint32 at = 1;
    words[0] = 0;
    for (int i = 0; i < count; ++i) {
        if (!columns[i].bounded) continue;
        const CodeRanges& passing = columns[i].passing;
        if (passing.count == 0) out->none = true;
        words[0]++;
        words[at++] = static_cast<uint64>(i) | uint64{passing.count} << 32;
        if (passing.count > 0) memcpy(words + at, passing.items, sizeof(CodeRange) * passing.count);
        at += 2 * passing.count;
    }
    if (words[0] == 0) return;
    out->words = words;
    out->word_count = at;
}

// A key of the column that the index orders by: IS NULL or IS NOT NULL.
void read_vector_key(const ScanKeyData& key, FilterKeys* out)
{
    if ((key.sk_flags & SK_SEARCHNULL) != 0) {
        out->null_vectors = true;
    } else if ((key.sk_flags & SK_SEARCHNOTNULL) != 0) {
        out->placed_vectors = true;
    } else {
        out->recheck = true;
    }
}

}  // namespace

FilterKeys read_filter_keys(Relation index, const ScanKeyData* keys, int count)
{
    FilterKeys out = {};
    if (count == 0) return out;
    AttributeCoder coder;
    open_attribute_coder(index, &coder);
    KeyColumn columns[most_filter_columns] = {};
    for (int i = 0; i < coder.count; ++i) {
        const auto* attribute = TupleDescAttr(RelationGetDescr(index), filter_column(coder.vector, i));
        columns[i] = {coder.columns[i].form, coder.columns[i].collation, getBaseType(attribute->atttypid), false, {}};
    }
    for (int i = 0; i < count; ++i) {
        const int position = keys[i].sk_attno - 1;
        if (position == coder.vector) {
            read_vector_key(keys[i], &out);
            continue;
        }
        KeyColumn& column = columns[filter_number(coder.vector, position)];
        CodeRanges ranges = {};
        if (read_key(column, keys[i], &ranges, &out.recheck)) {
            narrow(&column, &ranges);
        } else {
            out.recheck = true;
        }
    }
    if (shorten(columns, coder.count)) out.recheck = true;
    write_predicate(columns, coder.count, &out);
    if (out.null_vectors && out.placed_vectors) out.none = true;
    return out;
}

}  // namespace pgwarp
