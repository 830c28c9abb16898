// Casts of sparse vectors, from and to vectors and halfvecs, and from arrays.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/number_array.h"
#include "postgres/types/sparsevec.h"
#include "postgres/types/vector.h"

namespace pgwarp
{

namespace
{

// Make a sparse vector of `dim` elements, of which value_of(i) is one. A value that is not zero is checked.
template <class ValueOf>
SparseVector* sparsevec_of_values(int dim, int32 typmod, ValueOf value_of)
{
    check_sparsevec_dim(dim);
    check_expected_dim(typmod, dim);
    int nnz = 0;
    for (int i = 0; i < dim; ++i) nnz += value_of(i) != 0 ? 1 : 0;
    check_sparsevec_nnz(nnz, dim);
    SparseVector* result = make_sparsevec(dim, nnz);
    float* values = sparsevec_values(result);
    int filled = 0;
    for (int i = 0; i < dim; ++i) {
        const float value = value_of(i);
        if (value == 0) continue;
        check_sparsevec_element(value);
        result->indices[filled] = static_cast<uint32>(i);
        values[filled++] = value;
    }
    return result;
}

template <class Element>
Datum sparsevec_of_vector(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    PG_RETURN_SPARSEVEC(
        sparsevec_of_values(vector->dim, PG_GETARG_INT32(1), [vector](int i) { return element_value(vector->x[i]); }));
}

template <class Element>
Datum sparsevec_to_dense(FunctionCallInfo fcinfo)
{
    const SparseVector* sparse = PG_GETARG_SPARSEVEC(0);
    const float* values = sparsevec_values(sparse);
    check_dim<Element>(sparse->dim);
    check_expected_dim(PG_GETARG_INT32(1), sparse->dim);
    VectorOf<Element>* result = make_vector<Element>(sparse->dim);
    for (int i = 0; i < sparse->nnz; ++i) result->x[sparse->indices[i]] = checked_element<Element>(values[i]);
    PG_RETURN_VECTOR(result);
}

}  // namespace
}  // namespace pgwarp

PGWARP_VECTOR_FUNCTION(pgwarp_vector_to_sparsevec, pgwarp_halfvec_to_sparsevec, pgwarp::sparsevec_of_vector)
PGWARP_VECTOR_FUNCTION(pgwarp_sparsevec_to_vector, pgwarp_sparsevec_to_halfvec, pgwarp::sparsevec_to_dense)

// A cast to the same type only checks the dimensions against the type modifier.
PGWARP_FUNCTION(pgwarp_sparsevec)
{
    pgwarp::SparseVector* vector = PG_GETARG_SPARSEVEC(0);
    pgwarp::check_expected_dim(PG_GETARG_INT32(1), vector->dim);
    PG_RETURN_SPARSEVEC(vector);
}

PGWARP_FUNCTION(pgwarp_array_to_sparsevec)
{
    using namespace pgwarp;
    NumberArray array(PG_GETARG_DATUM(0));
    SparseVector* result =
        sparsevec_of_values(array.count(), PG_GETARG_INT32(1), [&array](int i) { return array.value(i); });
    array.release();
    PG_RETURN_SPARSEVEC(result);
}
