#include "postgres/am/attribute_code.h"

#include "protocol/attribute_codes.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
}

namespace pgwarp
{

namespace
{

uint64 code_of_uuid(Datum value)
{
    uint64 code = 0;
    for (Size i = 0; i < sizeof(code); ++i) code = code << 8 | DatumGetUUIDP(value)->data[i];
    return code_of_bits(code);
}

// A hash that PostgreSQL's hash indexes keep on disk too.
uint64 code_of_hash(PGFunction hash, Oid collation, Datum value)
{
    const Datum seed = Int64GetDatum(0);
    return code_of_bits(DatumGetUInt64(DirectFunctionCall2Coll(hash, collation, value, seed)));
}

bool is_integer(CodeForm form)
{
    return form == CodeForm::int2 || form == CodeForm::int4 || form == CodeForm::int8;
}

bool is_float(CodeForm form)
{
    return form == CodeForm::float4 || form == CodeForm::float8;
}

}  // namespace

CodeForm code_form(Oid type)
{
    const Oid base = getBaseType(type);
    switch (base) {
        case INT2OID:
            return CodeForm::int2;
        case INT4OID:
            return CodeForm::int4;
        case INT8OID:
            return CodeForm::int8;
        case FLOAT4OID:
            return CodeForm::float4;
        case FLOAT8OID:
            return CodeForm::float8;
        case BOOLOID:
            return CodeForm::boolean;
        case DATEOID:
            return CodeForm::date;
        case TIMESTAMPOID:
            return CodeForm::timestamp;
        case TIMESTAMPTZOID:
            return CodeForm::timestamptz;
        case OIDOID:
            return CodeForm::oid;
        case NUMERICOID:
            return CodeForm::numeric;
        case UUIDOID:
            return CodeForm::uuid;
        case TEXTOID:
        case VARCHAROID:
            return CodeForm::text;
        case BPCHAROID:
            return CodeForm::bpchar;
        case INETOID:
        case CIDROID:
            return CodeForm::inet;
        case ANYENUMOID:
            return CodeForm::enumeration;
        default:
            return get_typtype(base) == TYPTYPE_ENUM ? CodeForm::enumeration : CodeForm::none;
    }
}

bool is_ordered(CodeForm form)
{
    return form != CodeForm::none && form < CodeForm::text && form != CodeForm::enumeration;
}

bool may_tie(CodeForm form)
{
    return form >= CodeForm::numeric;
}

bool are_comparable(CodeForm left, CodeForm right)
{
    return (left != CodeForm::none && left == right) || (is_integer(left) && is_integer(right)) ||
           (is_float(left) && is_float(right));
}

uint64 code_of_value(CodeForm form, Oid collation, Datum value)
{
    switch (form) {
        case CodeForm::int2:
            return code_of_integer(DatumGetInt16(value));
        case CodeForm::int4:
            return code_of_integer(DatumGetInt32(value));
        case CodeForm::int8:
            return code_of_integer(DatumGetInt64(value));
        case CodeForm::float4:
            return code_of_float(DatumGetFloat4(value));
        case CodeForm::float8:
            return code_of_float(DatumGetFloat8(value));
        case CodeForm::boolean:
            return code_of_integer(DatumGetBool(value) ? 1 : 0);
        case CodeForm::date:
            return code_of_integer(DatumGetDateADT(value));
        case CodeForm::timestamp:
        case CodeForm::timestamptz:
            return code_of_integer(DatumGetTimestamp(value));
        case CodeForm::oid:
        case CodeForm::enumeration:
            return code_of_bits(DatumGetObjectId(value));
        case CodeForm::numeric:
            return code_of_float(DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value)));
        case CodeForm::uuid:
            return code_of_uuid(value);
        case CodeForm::text:
            return code_of_hash(hashtextextended, collation, value);
        case CodeForm::bpchar:
            return code_of_hash(hashbpcharextended, collation, value);
        case CodeForm::inet:
            return code_of_hash(hashinetextended, InvalidOid, value);
        case CodeForm::none:
            break;
    }
    elog(ERROR, "a value without a code");
}

void open_attribute_coder(Relation index, AttributeCoder* coder)
{
    coder->vector = vector_column(index);
    coder->count = Min(filter_column_count(index), most_filter_columns);
    for (int i = 0; i < coder->count; ++i) {
        const int column = filter_column(coder->vector, i);
        const auto* attribute = TupleDescAttr(RelationGetDescr(index), column);
        coder->columns[i] = {code_form(attribute->atttypid), index->rd_indcollation[column]};
        if (coder->columns[i].form != CodeForm::none) continue;
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("index \"%s\" cannot filter by column \"%s\" of type %s", RelationGetRelationName(index),
                               NameStr(attribute->attname), format_type_be(attribute->atttypid)),
                        errhint("Columns to filter by are numbers, booleans, dates, timestamps, enums, uuids, texts "
                                "and inets, also as expressions. Queries may have other conditions too.")));
    }
}

void code_attributes(const AttributeCoder& coder, const Datum* values, const bool* nulls, uint64* attributes)
{
    for (int i = 0; i < coder.count; ++i) {
        const int column = filter_column(coder.vector, i);
        attributes[i] = nulls[column]
                            ? null_code
                            : code_of_value(coder.columns[i].form, coder.columns[i].collation, values[column]);
    }
}

}  // namespace pgwarp
