// Order and hash of vectors: element by element, then the shorter first.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <cmath>

extern "C" {
#include "common/hashfn.h"
}

using pgwarp::Vector;

namespace
{

// Compare values before dimensions, as PostgreSQL does with arrays.
int compare(const Vector* a, const Vector* b)
{
    const int common = Min(a->dim, b->dim);
    for (int i = 0; i < common; ++i) {
        if (a->x[i] < b->x[i]) return -1;
        if (a->x[i] > b->x[i]) return 1;
    }
    if (a->dim != b->dim) return a->dim < b->dim ? -1 : 1;
    return 0;
}

// Compare both arguments. Sorts and index scans call this in long-lived contexts, so detoasted copies are freed.
int compare_arguments(FunctionCallInfo fcinfo)
{
    Vector* a = PG_GETARG_VECTOR(0);
    Vector* b = PG_GETARG_VECTOR(1);
    const int result = compare(a, b);
    PG_FREE_IF_COPY(a, 0);
    PG_FREE_IF_COPY(b, 1);
    return result;
}

bool has_negative_zero(const Vector* vector)
{
    bool found = false;
    for (int i = 0; i < vector->dim; ++i) found |= vector->x[i] == 0 && std::signbit(vector->x[i]);
    return found;
}

// Hash the bytes of argument 0 with `hash`, -0 taken as 0 since both are equal.
template <class Hash>
Datum hash_argument(FunctionCallInfo fcinfo, Hash hash)
{
    Vector* argument = PG_GETARG_VECTOR(0);
    Vector* vector = argument;
    if (has_negative_zero(argument)) {
        vector = pgwarp::make_vector(argument->dim);
        for (int i = 0; i < vector->dim; ++i) vector->x[i] = argument->x[i] == 0 ? 0.0F : argument->x[i];
    }
    const Datum result =
        hash(reinterpret_cast<unsigned char*>(vector->x), static_cast<int>(sizeof(float)) * vector->dim);
    if (vector != argument) pfree(vector);
    PG_FREE_IF_COPY(argument, 0);
    return result;
}

}  // namespace

// Tell whether the first is less.
PGWARP_FUNCTION(vector_lt)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) < 0);
}

// Tell whether the first is less or equal.
PGWARP_FUNCTION(vector_le)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) <= 0);
}

// Tell whether both are equal.
PGWARP_FUNCTION(vector_eq)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) == 0);
}

// Tell whether both differ.
PGWARP_FUNCTION(vector_ne)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) != 0);
}

// Tell whether the first is greater or equal.
PGWARP_FUNCTION(vector_ge)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) >= 0);
}

// Tell whether the first is greater.
PGWARP_FUNCTION(vector_gt)
{
    PG_RETURN_BOOL(compare_arguments(fcinfo) > 0);
}

// Compare for a btree.
PGWARP_FUNCTION(vector_cmp)
{
    PG_RETURN_INT32(compare_arguments(fcinfo));
}

// Hash to 32 bits.
PGWARP_FUNCTION(vector_hash)
{
    return hash_argument(fcinfo, [](const unsigned char* bytes, int length) { return hash_any(bytes, length); });
}

// Hash to 64 bits with a seed.
PGWARP_FUNCTION(vector_hash_extended)
{
    const uint64 seed = static_cast<uint64>(PG_GETARG_INT64(1));
    return hash_argument(
        fcinfo, [seed](const unsigned char* bytes, int length) { return hash_any_extended(bytes, length, seed); });
}
