// avg(vector) and avg(halfvec). The transition state is a float8[]: {count, sum of each element}, {0} when empty.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/float.h"
}

using pgwarp::check_dim;
using pgwarp::check_expected_dim;
using pgwarp::checked_element;
using pgwarp::datum_get_vector;
using pgwarp::element_value;
using pgwarp::half_bits;
using pgwarp::make_vector;
using pgwarp::VectorOf;

namespace
{

struct State {
    ArrayType* array;
    int dim;
    double* count;
    double* sums;
};

State view_state(ArrayType* array)
{
    double* values = reinterpret_cast<double*>(ARR_DATA_PTR(array));
    return {array, ARR_DIMS(array)[0] - 1, values, values + 1};
}

// Check argument n and view it as a state: users may call these functions with any array.
State state_argument(FunctionCallInfo fcinfo, int n, const char* caller)
{
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(n);
    if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] < 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != FLOAT8OID) {
        elog(ERROR, "%s: expected state array", caller);
    }
    return view_state(array);
}

// Make a state of zeros in the current memory context.
State make_state(int dim)
{
    const Size size = ARR_OVERHEAD_NONULLS(1) + sizeof(double) * (static_cast<Size>(dim) + 1);
    ArrayType* array = static_cast<ArrayType*>(palloc0(size));
    SET_VARSIZE(array, size);
    array->ndim = 1;
    array->dataoffset = 0;
    array->elemtype = FLOAT8OID;
    ARR_DIMS(array)[0] = dim + 1;
    ARR_LBOUND(array)[0] = 1;
    return view_state(array);
}

template <class Value>
double term(Value value)
{
    if constexpr (std::is_same_v<Value, double>) {
        return value;
    } else {
        return element_value(value);
    }
}

// Set sums = a + b; an overflow is an error.
template <class Value>
void add_sums(double* sums, const double* a, const Value* b, int dim)
{
    bool overflow = false;
    for (int i = 0; i < dim; ++i) {
        sums[i] = a[i] + term(b[i]);
        overflow |= std::isinf(sums[i]);
    }
    if (overflow) float_overflow_error();
}

// Add one vector to the state.
template <class Element>
Datum accumulate(FunctionCallInfo fcinfo, const char* caller)
{
    const State old = state_argument(fcinfo, 0, caller);
    const VectorOf<Element>* value = datum_get_vector<Element>(PG_GETARG_DATUM(1));
    if (old.dim > 0) check_expected_dim(old.dim, value->dim);
    // PostgreSQL allows an aggregate to change its own state in place.
    const bool in_place = old.dim > 0 && AggCheckCallContext(fcinfo, nullptr) != 0;
    const State next = in_place ? old : make_state(value->dim);
    // The mean of one row is that row: -0 keeps its sign when it is added to -0, and loses it when it is added to 0.
    if (old.dim == 0) std::fill_n(next.sums, value->dim, -0.0);
    add_sums(next.sums, old.dim > 0 ? old.sums : next.sums, value->x, value->dim);
    *next.count = *old.count + 1;
    PG_RETURN_ARRAYTYPE_P(next.array);
}

// Compute the mean from the state; the mean of no rows is NULL.
template <class Element>
Datum average(FunctionCallInfo fcinfo, const char* caller)
{
    const State state = state_argument(fcinfo, 0, caller);
    if (*state.count == 0) PG_RETURN_NULL();
    check_dim<Element>(state.dim);
    VectorOf<Element>* result = make_vector<Element>(state.dim);
    for (int i = 0; i < state.dim; ++i) {
        result->x[i] = checked_element<Element>(static_cast<float>(state.sums[i] / *state.count));
    }
    PG_RETURN_VECTOR(result);
}

}  // namespace

PGWARP_FUNCTION(pgwarp_vector_accum)
{
    return accumulate<float>(fcinfo, "vector_accum");
}

PGWARP_FUNCTION(pgwarp_halfvec_accum)
{
    return accumulate<half_bits>(fcinfo, "halfvec_accum");
}

PGWARP_FUNCTION(pgwarp_vector_avg)
{
    return average<float>(fcinfo, "vector_avg");
}

PGWARP_FUNCTION(pgwarp_halfvec_avg)
{
    return average<half_bits>(fcinfo, "halfvec_avg");
}

// Combine the states of two workers, of either type.
PGWARP_FUNCTION(pgwarp_vector_combine)
{
    const State a = state_argument(fcinfo, 0, "vector_combine");
    const State b = state_argument(fcinfo, 1, "vector_combine");
    // A worker without rows has a state without sums.
    const State& some = a.dim > 0 ? a : b;
    if (some.dim > 0) check_dim(some.dim);
    const State sum = make_state(some.dim);
    if (a.dim > 0 && b.dim > 0) {
        check_expected_dim(a.dim, b.dim);
        add_sums(sum.sums, a.sums, b.sums, a.dim);
    } else {
        memcpy(sum.sums, some.sums, sizeof(double) * static_cast<Size>(some.dim));
    }
    *sum.count = *a.count + *b.count;
    PG_RETURN_ARRAYTYPE_P(sum.array);
}
