// Order and hash of vectors and halfvecs: element by element; if one is a prefix of the other, the shorter is first.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <cmath>

extern "C" {
#include "common/hashfn.h"
}

namespace pgwarp
{

namespace
{

// Compare values before dimensions, as PostgreSQL does with arrays.
template <class Element>
int compare(const VectorOf<Element>* a, const VectorOf<Element>* b)
{
    const int common = Min(a->dim, b->dim);
    for (int i = 0; i < common; ++i) {
        const float left = element_value(a->x[i]);
        const float right = element_value(b->x[i]);
        if (left < right) return -1;
        if (left > right) return 1;
    }
    if (a->dim != b->dim) return a->dim < b->dim ? -1 : 1;
    return 0;
}

// Compare both arguments. Sorts and index scans call this in long-lived contexts, so detoasted copies are freed.
template <class Element>
int compare_arguments(FunctionCallInfo fcinfo)
{
    VectorOf<Element>* a = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    VectorOf<Element>* b = datum_get_vector<Element>(PG_GETARG_DATUM(1));
    const int result = compare(a, b);
    PG_FREE_IF_COPY(a, 0);
    PG_FREE_IF_COPY(b, 1);
    return result;
}

template <class Element>
Datum is_less(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) < 0);
}

template <class Element>
Datum is_less_or_equal(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) <= 0);
}

template <class Element>
Datum is_equal(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) == 0);
}

template <class Element>
Datum is_not_equal(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) != 0);
}

template <class Element>
Datum is_greater_or_equal(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) >= 0);
}

template <class Element>
Datum is_greater(FunctionCallInfo fcinfo)
{
    PG_RETURN_BOOL(compare_arguments<Element>(fcinfo) > 0);
}

template <class Element>
Datum compare_for_btree(FunctionCallInfo fcinfo)
{
    PG_RETURN_INT32(compare_arguments<Element>(fcinfo));
}

template <class Element>
bool is_negative_zero(Element element)
{
    return element_value(element) == 0 && std::signbit(element_value(element));
}

template <class Element>
bool has_negative_zero(const VectorOf<Element>* vector)
{
    bool found = false;
    for (int i = 0; i < vector->dim; ++i) found |= is_negative_zero(vector->x[i]);
    return found;
}

// Hash the bytes of argument 0 with `hash`; -0 is hashed as 0, because both are equal.
template <class Element, class Hash>
Datum hash_argument(FunctionCallInfo fcinfo, Hash hash)
{
    VectorOf<Element>* argument = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    VectorOf<Element>* vector = argument;
    if (has_negative_zero(argument)) {
        vector = make_vector<Element>(argument->dim);
        for (int i = 0; i < vector->dim; ++i) {
            vector->x[i] = is_negative_zero(argument->x[i]) ? Element{0} : argument->x[i];
        }
    }
    const Datum result =
        hash(reinterpret_cast<unsigned char*>(vector->x), static_cast<int>(sizeof(Element)) * vector->dim);
    if (vector != argument) pfree(vector);
    PG_FREE_IF_COPY(argument, 0);
    return result;
}

template <class Element>
Datum hash_to_32(FunctionCallInfo fcinfo)
{
    return hash_argument<Element>(fcinfo,
                                  [](const unsigned char* bytes, int length) { return hash_any(bytes, length); });
}

template <class Element>
Datum hash_to_64(FunctionCallInfo fcinfo)
{
    const uint64 seed = static_cast<uint64>(PG_GETARG_INT64(1));
    return hash_argument<Element>(
        fcinfo, [seed](const unsigned char* bytes, int length) { return hash_any_extended(bytes, length, seed); });
}

}  // namespace
}  // namespace pgwarp

PGWARP_VECTOR_FUNCTION(pgwarp_vector_lt, pgwarp_halfvec_lt, pgwarp::is_less)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_le, pgwarp_halfvec_le, pgwarp::is_less_or_equal)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_eq, pgwarp_halfvec_eq, pgwarp::is_equal)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_ne, pgwarp_halfvec_ne, pgwarp::is_not_equal)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_ge, pgwarp_halfvec_ge, pgwarp::is_greater_or_equal)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_gt, pgwarp_halfvec_gt, pgwarp::is_greater)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_cmp, pgwarp_halfvec_cmp, pgwarp::compare_for_btree)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_hash, pgwarp_halfvec_hash, pgwarp::hash_to_32)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_hash_extended, pgwarp_halfvec_hash_extended, pgwarp::hash_to_64)
