// Makes attributes of the columns of a row, or of names and values in turn.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/attributes.h"

#include <cmath>

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "datatype/timestamp.h"
#include "funcapi.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
}

namespace pgwarp
{

namespace
{

enum class ValueForm : uint8 {
    int2,
    int4,
    int8,
    oid,
    float4,
    float8,
    numeric,
    date,
    timestamp,
    time,
    boolean,
    text,
    padded_text,
    output
};

// Tells how to read the values of a type. A call keeps these, as many as it has values, from row to row.
struct ValueReader {
    Oid type;
    ValueForm form;
    FmgrInfo output;  // of ValueForm::output
};

struct ValueReaders {
    uint32 count;
    ValueReader readers[FLEXIBLE_ARRAY_MEMBER];
};

[[noreturn]] void refuse_type(Oid type, const char* name)
{
    ereport(
        ERROR,
        (errcode(ERRCODE_DATATYPE_MISMATCH),
         errmsg("\"%s\" of type %s cannot be an attribute", name, format_type_be(type)),
         errdetail("The text form of the type depends on settings, so that it cannot be in an index."),
         errhint("Leave the column out of the row, or convert it to a number or to text by an immutable function.")));
    pg_unreachable();
}

ValueForm form_of_type(Oid base)
{
    switch (base) {
        case INT2OID:
            return ValueForm::int2;
        case INT4OID:
            return ValueForm::int4;
        case INT8OID:
            return ValueForm::int8;
        case OIDOID:
            return ValueForm::oid;
        case FLOAT4OID:
            return ValueForm::float4;
        case FLOAT8OID:
            return ValueForm::float8;
        case NUMERICOID:
            return ValueForm::numeric;
        case DATEOID:
            return ValueForm::date;
        case TIMESTAMPOID:
        case TIMESTAMPTZOID:
            return ValueForm::timestamp;
        case TIMEOID:
            return ValueForm::time;
        case BOOLOID:
            return ValueForm::boolean;
        case TEXTOID:
        case VARCHAROID:
            return ValueForm::text;
        case BPCHAROID:
            return ValueForm::padded_text;
        default:
            return ValueForm::output;
    }
}

// Returns the output function of a type if its text depends on no setting, otherwise InvalidOid.
Oid output_function(Oid type)
{
    Oid output = InvalidOid;
    bool is_varlena = false;
    getTypeOutputInfo(type, &output, &is_varlena);
    // The output of enums is only stable, since their values can be renamed.
    if (type_is_enum(type)) return output;
    // PostgreSQL calls these immutable in spite of bytea_output and extra_float_digits.
    char category = 0;
    bool preferred = false;
    get_type_category_preferred(type, &category, &preferred);
    if (type == BYTEAOID || category == TYPCATEGORY_GEOMETRIC) return InvalidOid;
    return func_volatile(output) == PROVOLATILE_IMMUTABLE ? output : InvalidOid;
}

void prepare_reader(ValueReader* reader, Oid type, const char* name, MemoryContext memory)
{
    const Oid base = getBaseType(type);
    reader->form = form_of_type(base);
    if (reader->form == ValueForm::output) {
        const Oid output = output_function(base);
        if (!OidIsValid(output)) refuse_type(type, name);
        fmgr_info_cxt(output, &reader->output, memory);
    }
    reader->type = type;
}

// Returns the readers of a call's values, whose types are InvalidOid before their first use.
ValueReader* readers_of_call(FunctionCallInfo fcinfo, uint32 count)
{
    auto* readers = static_cast<ValueReaders*>(fcinfo->flinfo->fn_extra);
    if (readers == nullptr || readers->count != count) {
        if (readers != nullptr) pfree(readers);
        readers = static_cast<ValueReaders*>(MemoryContextAllocZero(
            fcinfo->flinfo->fn_mcxt, offsetof(ValueReaders, readers) + sizeof(ValueReader) * count));
        readers->count = count;
        fcinfo->flinfo->fn_extra = readers;
    }
    return readers->readers;
}

double seconds_of_date(DateADT date)
{
    if (DATE_IS_NOBEGIN(date)) return -HUGE_VAL;
    if (DATE_IS_NOEND(date)) return HUGE_VAL;
    return (static_cast<double>(date) + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)) * SECS_PER_DAY;
}

// As extract(epoch FROM timestamp).
double seconds_of_timestamp(Timestamp timestamp)
{
    if (TIMESTAMP_IS_NOBEGIN(timestamp)) return -HUGE_VAL;
    if (TIMESTAMP_IS_NOEND(timestamp)) return HUGE_VAL;
    constexpr double epoch = static_cast<double>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
    return static_cast<double>(timestamp / USECS_PER_SEC) + epoch +
           static_cast<double>(timestamp % USECS_PER_SEC) / USECS_PER_SEC;
}

// Returns the number of a value whose form comes before boolean.
double number_of_value(ValueForm form, Datum value)
{
    switch (form) {
        case ValueForm::int2:
            return DatumGetInt16(value);
        case ValueForm::int4:
            return DatumGetInt32(value);
        case ValueForm::int8:
            return static_cast<double>(DatumGetInt64(value));
        case ValueForm::oid:
            return DatumGetObjectId(value);
        case ValueForm::float4:
            return DatumGetFloat4(value);
        case ValueForm::float8:
            return DatumGetFloat8(value);
        case ValueForm::numeric:
            return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
        case ValueForm::date:
            return seconds_of_date(DatumGetDateADT(value));
        case ValueForm::timestamp:
            return seconds_of_timestamp(DatumGetTimestamp(value));
        default:
            return static_cast<double>(DatumGetTimeADT(value)) / USECS_PER_SEC;
    }
}

void add_text(AttributeBuilder* builder, const char* name, int name_length, Datum value, bool padded)
{
    const text* detoasted = DatumGetTextPP(value);
    const char* bytes = VARDATA_ANY(detoasted);
    int length = static_cast<int>(VARSIZE_ANY_EXHDR(detoasted));
    while (padded && length > 0 && bytes[length - 1] == ' ') --length;
    add_category(builder, name, name_length, bytes, length);
}

// Calls an output function under the default of extra_float_digits, on which the text of floats within values of types
// such as cube depends.
char* text_of_value(FmgrInfo* output, Datum value)
{
    const int digits = extra_float_digits;
    char* volatile written = nullptr;
    PG_TRY();
    {
        extra_float_digits = 1;
        written = OutputFunctionCall(output, value);
    }
    PG_FINALLY();
    {
        extra_float_digits = digits;
    }
    PG_END_TRY();
    return written;
}

void add_value(AttributeBuilder* builder, const char* name, int name_length, ValueReader* reader, Datum value)
{
    if (reader->form < ValueForm::boolean) {
        const double number = number_of_value(reader->form, value);
        if (!std::isnan(number)) add_number(builder, name, name_length, number);
    } else if (reader->form == ValueForm::boolean) {
        const char* category = DatumGetBool(value) ? "true" : "false";
        add_category(builder, name, name_length, category, static_cast<int>(strlen(category)));
    } else if (reader->form == ValueForm::output) {
        const char* category = text_of_value(&reader->output, value);
        add_category(builder, name, name_length, category, static_cast<int>(strlen(category)));
    } else {
        add_text(builder, name, name_length, value, reader->form == ValueForm::padded_text);
    }
}

PartsValue* attributes_of_row(FunctionCallInfo fcinfo)
{
    HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(0);
    const TupleDesc columns = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
    HeapTupleData tuple = {};
    tuple.t_len = HeapTupleHeaderGetDatumLength(row);
    tuple.t_data = row;
    const auto count = static_cast<uint32>(columns->natts);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    heap_deform_tuple(&tuple, columns, values, nulls);
    ValueReader* readers = readers_of_call(fcinfo, count);
    AttributeBuilder builder;
    begin_attributes(&builder, ERRCODE_INVALID_PARAMETER_VALUE);
    for (uint32 i = 0; i < count; ++i) {
        const FormData_pg_attribute* column = TupleDescAttr(columns, i);
        if (column->attisdropped) continue;
        const char* name = NameStr(column->attname);
        if (readers[i].type != column->atttypid)
            prepare_reader(&readers[i], column->atttypid, name, fcinfo->flinfo->fn_mcxt);
        if (!nulls[i]) add_value(&builder, name, static_cast<int>(strlen(name)), &readers[i], values[i]);
    }
    PartsValue* result = finish_attributes(&builder);
    ReleaseTupleDesc(columns);
    return result;
}

// A name among the arguments.
const text* name_argument(Datum value, Oid type, bool null, int place)
{
    if (type != TEXTOID && type != VARCHAROID) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("argument %d of attributes() must be the name of an attribute, a text", place),
                        errhint("Names and values come in turn.")));
    }
    if (null) {
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("name of an attribute must not be null"),
                        errdetail("It is argument %d of attributes().", place)));
    }
    return DatumGetTextPP(value);
}

// The arguments are a name, a value, a name, a value, ... Returns null for VARIADIC NULL.
PartsValue* attributes_of_pairs(FunctionCallInfo fcinfo)
{
    Datum* values = nullptr;
    Oid* types = nullptr;
    bool* nulls = nullptr;
    const int count = extract_variadic_args(fcinfo, 1, true, &values, &types, &nulls);
    if (count < 0) return nullptr;
    if (count % 2 == 0) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("attributes() needs a value for each name"),
                        errhint("Names and values come in turn.")));
    }
    ValueReader* readers = readers_of_call(fcinfo, static_cast<uint32>(count));
    AttributeBuilder builder;
    begin_attributes(&builder, ERRCODE_INVALID_PARAMETER_VALUE);
    for (int i = 0; i < count; i += 2) {
        const text* name = i == 0 ? name_argument(PG_GETARG_DATUM(0), TEXTOID, PG_ARGISNULL(0), 1)
                                  : name_argument(values[i - 1], types[i - 1], nulls[i - 1], i + 1);
        const char* bytes = VARDATA_ANY(name);
        const int length = static_cast<int>(VARSIZE_ANY_EXHDR(name));
        if (readers[i].type != types[i])
            prepare_reader(&readers[i], types[i], pnstrdup(bytes, static_cast<Size>(length)), fcinfo->flinfo->fn_mcxt);
        if (!nulls[i]) add_value(&builder, bytes, length, &readers[i], values[i]);
    }
    return finish_attributes(&builder);
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_attributes_of_row)
{
    PG_RETURN_POINTER(pgwarp::attributes_of_row(fcinfo));
}

PGWARP_FUNCTION(pgwarp_attributes_of_pairs)
{
    const pgwarp::PartsValue* attributes = pgwarp::attributes_of_pairs(fcinfo);
    if (attributes == nullptr) PG_RETURN_NULL();
    PG_RETURN_POINTER(attributes);
}
