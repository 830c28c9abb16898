// Distances and norms of sparse vectors.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/sparsevec.h"
#include "postgres/types/vector.h"

namespace pgwarp
{

namespace
{

struct SparseArguments {
    SparseView a;
    SparseView b;
};

// Returns both arguments; raises an error unless their dimensions are the same.
SparseArguments two_sparsevecs(FunctionCallInfo fcinfo)
{
    const SparseVector* a = PG_GETARG_SPARSEVEC(0);
    const SparseVector* b = PG_GETARG_SPARSEVEC(1);
    if (a->dim != b->dim) refuse_different_dims("sparsevec", a->dim, b->dim);
    return {view_sparsevec(a), view_sparsevec(b)};
}

Datum sparse_distance_of_arguments(FunctionCallInfo fcinfo, Metric metric)
{
    const SparseArguments arguments = two_sparsevecs(fcinfo);
    PG_RETURN_FLOAT8(sparse_distance(metric, arguments.a, arguments.b));
}

// Copy the elements, but those that are zero, to a new vector.
SparseVector* without_zeros(const SparseVector* vector, const float* values)
{
    int nnz = 0;
    for (int i = 0; i < vector->nnz; ++i) nnz += values[i] != 0 ? 1 : 0;
    SparseVector* result = make_sparsevec(vector->dim, nnz);
    float* out = sparsevec_values(result);
    int filled = 0;
    for (int i = 0; i < vector->nnz; ++i) {
        if (values[i] == 0) continue;
        result->indices[filled] = vector->indices[i];
        out[filled++] = values[i];
    }
    return result;
}

}  // namespace
}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_sparsevec_l2_distance)
{
    return pgwarp::sparse_distance_of_arguments(fcinfo, pgwarp::Metric::l2);
}

PGWARP_FUNCTION(pgwarp_sparsevec_cosine_distance)
{
    return pgwarp::sparse_distance_of_arguments(fcinfo, pgwarp::Metric::cosine);
}

PGWARP_FUNCTION(pgwarp_sparsevec_l1_distance)
{
    return pgwarp::sparse_distance_of_arguments(fcinfo, pgwarp::Metric::l1);
}

// The negative inner product orders rows.
PGWARP_FUNCTION(pgwarp_sparsevec_negative_inner_product)
{
    return pgwarp::sparse_distance_of_arguments(fcinfo, pgwarp::Metric::inner_product);
}

PGWARP_FUNCTION(pgwarp_sparsevec_inner_product)
{
    const pgwarp::SparseArguments arguments = pgwarp::two_sparsevecs(fcinfo);
    PG_RETURN_FLOAT8(pgwarp::sparse_dot(arguments.a, arguments.b));
}

PGWARP_FUNCTION(pgwarp_sparsevec_l2_squared_distance)
{
    const pgwarp::SparseArguments arguments = pgwarp::two_sparsevecs(fcinfo);
    PG_RETURN_FLOAT8(pgwarp::sparse_l2_squared(arguments.a, arguments.b));
}

PGWARP_FUNCTION(pgwarp_sparsevec_l2_norm)
{
    PG_RETURN_FLOAT8(pgwarp::sparse_norm(pgwarp::view_sparsevec(PG_GETARG_SPARSEVEC(0))));
}

// Scales to unit norm; a vector of zeros is returned unchanged. Elements that become zero are left out.
PGWARP_FUNCTION(pgwarp_sparsevec_l2_normalize)
{
    using namespace pgwarp;
    const SparseVector* vector = PG_GETARG_SPARSEVEC(0);
    const SparseView view = view_sparsevec(vector);
    const double norm = sparse_norm(view);
    auto* scaled = static_cast<float*>(palloc(sizeof(float) * view.count));
    // An element is at most as large as the norm, so that none overflows.
    for (std::size_t i = 0; i < view.count; ++i) scaled[i] = static_cast<float>(view.values[i] / norm);
    SparseVector* result = without_zeros(vector, scaled);
    pfree(scaled);
    PG_RETURN_SPARSEVEC(result);
}
