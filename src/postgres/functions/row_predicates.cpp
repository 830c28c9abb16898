#include "postgres/functions/row_predicates.h"

#include "protocol/attribute_codes.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

namespace pgwarp
{

namespace
{

const char* column_name(Relation index, const RowPredicates& predicates, int i)
{
    const int column = filter_column(predicates.coder.vector, i);
    return NameStr(TupleDescAttr(RelationGetDescr(index), column)->attname);
}

// A column that is an expression has a name that its user never wrote.
const char* name_columns(Relation index, const RowPredicates& predicates)
{
    StringInfoData names;
    initStringInfo(&names);
    for (int i = 0; i < predicates.coder.count; ++i) {
        appendStringInfo(&names, "%s\"%s\"", i > 0 ? ", " : "", column_name(index, predicates, i));
    }
    return names.data;
}

void choose_column(Relation index, const char* name, RowPredicates* predicates)
{
    for (int i = 0; i < predicates->coder.count; ++i) {
        if (strcmp(column_name(index, *predicates, i), name) != 0) continue;
        predicates->compared[i] = true;
        return;
    }
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                    errmsg("index \"%s\" has no column \"%s\" to filter by", RelationGetRelationName(index), name),
                    predicates->coder.count == 0
                        ? 0
                        : errhint("Its columns to filter by are %s.", name_columns(index, *predicates))));
}

}  // namespace

RowPredicates* open_row_predicates(Relation index, ::ArrayType* columns)
{
    auto* made = static_cast<RowPredicates*>(palloc0(sizeof(RowPredicates)));
    open_attribute_coder(index, &made->coder);
    Datum* names = nullptr;
    bool* nulls = nullptr;
    int count = 0;
    deconstruct_array(columns, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, &count);
    for (int i = 0; i < count; ++i) {
        if (!nulls[i]) choose_column(index, TextDatumGetCString(names[i]), made);
    }
    made->words = 1;
    for (int i = 0; i < made->coder.count; ++i) made->words += made->compared[i] ? 3 : 0;
    if (made->words == 1) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("no column to filter by is given")));
    }
    return made;
}

void read_row_codes(const RowPredicates& predicates, HeapReader* reader, TupleTableSlot* slot,
                    uint64 codes[most_filter_columns])
{
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    slot_values(reader, slot, values, nulls);
    MemoryContext outer = MemoryContextSwitchTo(reader->row_context);
    code_attributes(predicates.coder, values, nulls, codes);
    MemoryContextSwitchTo(outer);
}

bool makes_predicate(const RowPredicates& predicates, const uint64* codes)
{
    for (int i = 0; i < predicates.coder.count; ++i) {
        if (predicates.compared[i] && codes[i] == null_code) return false;
    }
    return true;
}

void make_row_predicate(const RowPredicates& predicates, const uint64* codes, uint64* words)
{
    uint64* out = words + 1;
    words[0] = 0;
    for (int i = 0; i < predicates.coder.count; ++i) {
        if (!predicates.compared[i]) continue;
        words[0]++;
        *out++ = static_cast<uint64>(i) | UINT64CONST(1) << 32;
        *out++ = codes[i];
        *out++ = codes[i];
    }
}

}  // namespace pgwarp
