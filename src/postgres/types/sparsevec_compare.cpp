// Order and hash of sparse vectors. The order is that of vectors: element by element, those that are not stored too; if
// one vector is a prefix of the other, the shorter is first.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/sparsevec.h"

extern "C" {
#include "common/hashfn.h"
}

namespace pgwarp
{

namespace
{

// Compare 0 with a vector's element `i`, which the other vector of `other_dim` dimensions does not store. Returns 0 if
// the other ends before it.
int compare_zero_with(const SparseVector* vector, int i, int other_dim)
{
    if (vector->indices[i] >= static_cast<uint32>(other_dim)) return 0;
    return sparsevec_values(vector)[i] < 0 ? 1 : -1;
}

int compare_sparsevecs(const SparseVector* a, const SparseVector* b)
{
    const float* values_a = sparsevec_values(a);
    const float* values_b = sparsevec_values(b);
    const int common = Min(a->nnz, b->nnz);
    for (int i = 0; i < common; ++i) {
        if (a->indices[i] < b->indices[i]) return -compare_zero_with(a, i, b->dim);
        if (a->indices[i] > b->indices[i]) return compare_zero_with(b, i, a->dim);
        if (values_a[i] < values_b[i]) return -1;
        if (values_a[i] > values_b[i]) return 1;
    }
    int order = 0;
    if (a->nnz > common) order = -compare_zero_with(a, common, b->dim);
    if (b->nnz > common) order = compare_zero_with(b, common, a->dim);
    if (order == 0 && a->dim != b->dim) order = a->dim < b->dim ? -1 : 1;
    return order;
}

// Compare both arguments. Sorts and index scans call this in long-lived contexts, so detoasted copies are freed.
int compare_sparsevec_arguments(FunctionCallInfo fcinfo)
{
    SparseVector* a = PG_GETARG_SPARSEVEC(0);
    SparseVector* b = PG_GETARG_SPARSEVEC(1);
    const int result = compare_sparsevecs(a, b);
    PG_FREE_IF_COPY(a, 0);
    PG_FREE_IF_COPY(b, 1);
    return result;
}

// Hash argument 0 with `hash`: dimensions and elements. Equal vectors have the same bytes, because zeros are not
// stored.
template <class Hash>
Datum hash_sparsevec_argument(FunctionCallInfo fcinfo, Hash hash)
{
    SparseVector* vector = PG_GETARG_SPARSEVEC(0);
    const auto length = static_cast<int>(sparsevec_size(vector->nnz) - offsetof(SparseVector, dim));
    const Datum result = hash(reinterpret_cast<const unsigned char*>(&vector->dim), length);
    PG_FREE_IF_COPY(vector, 0);
    return result;
}

}  // namespace
}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_sparsevec_lt)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) < 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_le)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) <= 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_eq)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) == 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_ne)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) != 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_ge)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) >= 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_gt)
{
    PG_RETURN_BOOL(pgwarp::compare_sparsevec_arguments(fcinfo) > 0);
}

PGWARP_FUNCTION(pgwarp_sparsevec_cmp)
{
    PG_RETURN_INT32(pgwarp::compare_sparsevec_arguments(fcinfo));
}

PGWARP_FUNCTION(pgwarp_sparsevec_hash)
{
    return pgwarp::hash_sparsevec_argument(
        fcinfo, [](const unsigned char* bytes, int length) { return hash_any(bytes, length); });
}

PGWARP_FUNCTION(pgwarp_sparsevec_hash_extended)
{
    const uint64 seed = static_cast<uint64>(PG_GETARG_INT64(1));
    return pgwarp::hash_sparsevec_argument(
        fcinfo, [seed](const unsigned char* bytes, int length) { return hash_any_extended(bytes, length, seed); });
}
