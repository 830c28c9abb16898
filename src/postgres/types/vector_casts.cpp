// Casts among vectors, halfvecs and arrays.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

using pgwarp::check_dim;
using pgwarp::check_expected_dim;
using pgwarp::checked_element;
using pgwarp::datum_get_vector;
using pgwarp::element_value;
using pgwarp::half_bits;
using pgwarp::HalfVector;
using pgwarp::make_vector;
using pgwarp::Vector;
using pgwarp::VectorOf;

namespace
{

// A cast to the same type only checks the dimensions against the type modifier.
template <class Element>
Datum to_same_type(FunctionCallInfo fcinfo)
{
    VectorOf<Element>* value = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    check_expected_dim(PG_GETARG_INT32(1), value->dim);
    PG_RETURN_VECTOR(value);
}

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

template <class Element>
Datum from_array(FunctionCallInfo fcinfo)
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
    check_dim<Element>(count);
    check_expected_dim(PG_GETARG_INT32(1), count);
    VectorOf<Element>* result = make_vector<Element>(count);
    for (int i = 0; i < count; ++i) result->x[i] = checked_element<Element>(element_to_float(type, elements[i]));
    pfree(elements);
    PG_RETURN_VECTOR(result);
}

template <class Element>
Datum to_array(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* value = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    const Size size = ARR_OVERHEAD_NONULLS(1) + sizeof(float) * static_cast<Size>(value->dim);
    ArrayType* result = static_cast<ArrayType*>(palloc0(size));
    SET_VARSIZE(result, size);
    result->ndim = 1;
    result->dataoffset = 0;
    result->elemtype = FLOAT4OID;
    ARR_DIMS(result)[0] = value->dim;
    ARR_LBOUND(result)[0] = 1;
    auto* elements = reinterpret_cast<float*>(ARR_DATA_PTR(result));
    for (int i = 0; i < value->dim; ++i) elements[i] = element_value(value->x[i]);
    PG_RETURN_ARRAYTYPE_P(result);
}

}  // namespace

PGWARP_VECTOR_FUNCTION(pgwarp_vector, pgwarp_halfvec, to_same_type)
PGWARP_VECTOR_FUNCTION(pgwarp_array_to_vector, pgwarp_array_to_halfvec, from_array)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_to_float4, pgwarp_halfvec_to_float4, to_array)

// Converts by rounding to halves.
PGWARP_FUNCTION(pgwarp_vector_to_halfvec)
{
    const Vector* value = PG_GETARG_VECTOR(0);
    check_expected_dim(PG_GETARG_INT32(1), value->dim);
    HalfVector* result = make_vector<half_bits>(value->dim);
    for (int i = 0; i < value->dim; ++i) result->x[i] = checked_element<half_bits>(value->x[i]);
    PG_RETURN_VECTOR(result);
}

// The conversion is exact: every half is a float.
PGWARP_FUNCTION(pgwarp_halfvec_to_vector)
{
    const HalfVector* value = datum_get_vector<half_bits>(PG_GETARG_DATUM(0));
    check_expected_dim(PG_GETARG_INT32(1), value->dim);
    Vector* result = make_vector(value->dim);
    for (int i = 0; i < value->dim; ++i) result->x[i] = element_value(value->x[i]);
    PG_RETURN_VECTOR(result);
}
