#include "postgres/types/number_array.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

namespace pgwarp
{

NumberArray::NumberArray(Datum datum)
{
    auto* array = reinterpret_cast<::ArrayType*>(PG_DETOAST_DATUM(datum));
    if (ARR_NDIM(array) > 1) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("array must be 1-D")));
    if (ARR_HASNULL(array) && array_contains_nulls(array)) {
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("array must not contain nulls")));
    }
    type_ = ARR_ELEMTYPE(array);
    int16 length;
    bool by_value;
    char alignment;
    get_typlenbyvalalign(type_, &length, &by_value, &alignment);
    deconstruct_array(array, type_, length, by_value, alignment, &elements_, nullptr, &count_);
}

float NumberArray::value(int i) const
{
    const Datum element = elements_[i];
    switch (type_) {
        case INT4OID:
            return static_cast<float>(DatumGetInt32(element));
        case FLOAT8OID:
            return static_cast<float>(DatumGetFloat8(element));
        case FLOAT4OID:
            return DatumGetFloat4(element);
        case NUMERICOID:
            return DatumGetFloat4(DirectFunctionCall1(numeric_float4, element));
        default:
            ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("unsupported array type")));
    }
    pg_unreachable();
}

void NumberArray::release()
{
    pfree(elements_);
}

}  // namespace pgwarp
