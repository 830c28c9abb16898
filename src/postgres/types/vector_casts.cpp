// Casts among vectors, halfvecs and arrays.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/number_array.h"
#include "postgres/types/vector.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
}

using pgwarp::check_dim;
using pgwarp::check_expected_dim;
using pgwarp::checked_element;
using pgwarp::datum_get_vector;
using pgwarp::element_value;
using pgwarp::half_bits;
using pgwarp::HalfVector;
using pgwarp::make_vector;
using pgwarp::NumberArray;
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

template <class Element>
Datum from_array(FunctionCallInfo fcinfo)
{
    NumberArray array(PG_GETARG_DATUM(0));
    const int dim = array.count();
    check_dim<Element>(dim);
    check_expected_dim(PG_GETARG_INT32(1), dim);
    VectorOf<Element>* result = make_vector<Element>(dim);
    for (int i = 0; i < dim; ++i) result->x[i] = checked_element<Element>(array.value(i));
    array.release();
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
