// Casts between vectors and arrays.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

using pgwarp::check_dim;
using pgwarp::check_element;
using pgwarp::check_expected_dim;
using pgwarp::make_vector;
using pgwarp::Vector;

// Check the dimensions of a vector against a type modifier.
PGWARP_FUNCTION(vector)
{
    Vector* value = PG_GETARG_VECTOR(0);
    check_expected_dim(PG_GETARG_INT32(1), value->dim);
    PG_RETURN_VECTOR(value);
}

namespace
{

// Convert one element of an array.
float element_to_float(Oid type, Datum element)
{
    switch (type) {
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

}  // namespace

// Convert an array of numbers to a vector.
PGWARP_FUNCTION(array_to_vector)
{
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(0);
    if (ARR_NDIM(array) > 1) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("array must be 1-D")));
    if (ARR_HASNULL(array) && array_contains_nulls(array)) {
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("array must not contain nulls")));
    }
    const Oid type = ARR_ELEMTYPE(array);
    int16 length;
    bool by_value;
    char alignment;
    get_typlenbyvalalign(type, &length, &by_value, &alignment);
    Datum* elements;
    int count;
    deconstruct_array(array, type, length, by_value, alignment, &elements, nullptr, &count);
    check_dim(count);
    check_expected_dim(PG_GETARG_INT32(1), count);
    Vector* result = make_vector(count);
    for (int i = 0; i < count; ++i) {
        result->x[i] = element_to_float(type, elements[i]);
        check_element(result->x[i]);
    }
    pfree(elements);
    PG_RETURN_VECTOR(result);
}

// Convert a vector to real[].
PGWARP_FUNCTION(vector_to_float4)
{
    const Vector* value = PG_GETARG_VECTOR(0);
    const Size bytes = sizeof(float) * static_cast<Size>(value->dim);
    const Size size = ARR_OVERHEAD_NONULLS(1) + bytes;
    ArrayType* result = static_cast<ArrayType*>(palloc0(size));
    SET_VARSIZE(result, size);
    result->ndim = 1;
    result->dataoffset = 0;
    result->elemtype = FLOAT4OID;
    ARR_DIMS(result)[0] = value->dim;
    ARR_LBOUND(result)[0] = 1;
    memcpy(ARR_DATA_PTR(result), value->x, bytes);
    PG_RETURN_ARRAYTYPE_P(result);
}
