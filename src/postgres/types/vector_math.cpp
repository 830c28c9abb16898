// Distances, arithmetic and parts of vectors.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <bit>
#include <cmath>

#include "numeric/metric.h"

extern "C" {
#include "utils/float.h"
#include "utils/varbit.h"
}

using pgwarp::canonical_distance;
using pgwarp::canonical_dot;
using pgwarp::canonical_l2_squared;
using pgwarp::canonical_norm;
using pgwarp::check_dim;
using pgwarp::check_same_dims;
using pgwarp::make_vector;
using pgwarp::Metric;
using pgwarp::Vector;

namespace
{

struct Arguments {
    const Vector* a;
    const Vector* b;
    std::size_t dim;
};

// Both arguments, which must have the same dimensions.
Arguments two_vectors(FunctionCallInfo fcinfo)
{
    const Vector* a = PG_GETARG_VECTOR(0);
    const Vector* b = PG_GETARG_VECTOR(1);
    check_same_dims(a, b);
    return {a, b, static_cast<std::size_t>(a->dim)};
}

// The canonical distance of both arguments.
double distance_of_arguments(FunctionCallInfo fcinfo, Metric metric)
{
    const Arguments arguments = two_vectors(fcinfo);
    return canonical_distance(metric, arguments.a->x, arguments.b->x, arguments.dim);
}

// Look for an infinity, as integers: compilers vectorise that but not a test of floats.
void check_overflow(const Vector* vector)
{
    constexpr int32 magnitude = 0x7fffffff;
    constexpr int32 largest_finite = 0x7f7fffff;
    const int dim = vector->dim;
    int32 overflow = 0;
    for (int i = 0; i < dim; ++i) overflow |= (std::bit_cast<int32>(vector->x[i]) & magnitude) > largest_finite ? 1 : 0;
    if (overflow != 0) float_overflow_error();
}

// Apply `operation` to each pair of elements; an overflow is an error.
template <class Operation>
Vector* elementwise(const Arguments& arguments, Operation operation)
{
    const int dim = arguments.a->dim;
    const float* a = arguments.a->x;
    const float* b = arguments.b->x;
    Vector* result = make_vector(dim);
    for (int i = 0; i < dim; ++i) result->x[i] = operation(a[i], b[i]);
    check_overflow(result);
    return result;
}

}  // namespace

// Get the L2 distance.
PGWARP_FUNCTION(l2_distance)
{
    PG_RETURN_FLOAT8(distance_of_arguments(fcinfo, Metric::l2));
}

// Get the L1 distance.
PGWARP_FUNCTION(l1_distance)
{
    PG_RETURN_FLOAT8(distance_of_arguments(fcinfo, Metric::l1));
}

// Get the cosine distance.
PGWARP_FUNCTION(cosine_distance)
{
    PG_RETURN_FLOAT8(distance_of_arguments(fcinfo, Metric::cosine));
}

// Get the negative inner product, by which rows are ordered.
PGWARP_FUNCTION(vector_negative_inner_product)
{
    PG_RETURN_FLOAT8(distance_of_arguments(fcinfo, Metric::inner_product));
}

// Get the inner product.
PGWARP_FUNCTION(inner_product)
{
    const Arguments arguments = two_vectors(fcinfo);
    PG_RETURN_FLOAT8(canonical_dot(arguments.a->x, arguments.b->x, arguments.dim));
}

// Get the square of the L2 distance.
PGWARP_FUNCTION(vector_l2_squared_distance)
{
    const Arguments arguments = two_vectors(fcinfo);
    PG_RETURN_FLOAT8(canonical_l2_squared(arguments.a->x, arguments.b->x, arguments.dim));
}

// Get the angle between two unit vectors, as a share of pi.
PGWARP_FUNCTION(vector_spherical_distance)
{
    const Arguments arguments = two_vectors(fcinfo);
    double product = canonical_dot(arguments.a->x, arguments.b->x, arguments.dim);
    if (product > 1) product = 1;
    if (product < -1) product = -1;
    PG_RETURN_FLOAT8(std::acos(product) / M_PI);
}

// Get the number of dimensions.
PGWARP_FUNCTION(vector_dims)
{
    PG_RETURN_INT32(PG_GETARG_VECTOR(0)->dim);
}

// Get the L2 norm.
PGWARP_FUNCTION(vector_norm)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    PG_RETURN_FLOAT8(canonical_norm(vector->x, static_cast<std::size_t>(vector->dim)));
}

// Scale to unit norm; a zero vector stays as it is.
PGWARP_FUNCTION(l2_normalize)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    const double norm = canonical_norm(vector->x, static_cast<std::size_t>(vector->dim));
    Vector* result = make_vector(vector->dim);
    if (norm > 0) {
        for (int i = 0; i < vector->dim; ++i) result->x[i] = static_cast<float>(vector->x[i] / norm);
        check_overflow(result);
    }
    PG_RETURN_VECTOR(result);
}

// Add element by element.
PGWARP_FUNCTION(vector_add)
{
    PG_RETURN_VECTOR(elementwise(two_vectors(fcinfo), [](float a, float b) { return a + b; }));
}

// Subtract element by element.
PGWARP_FUNCTION(vector_sub)
{
    PG_RETURN_VECTOR(elementwise(two_vectors(fcinfo), [](float a, float b) { return a - b; }));
}

// Multiply element by element; unlike a sum, a product may also underflow.
PGWARP_FUNCTION(vector_mul)
{
    const Arguments arguments = two_vectors(fcinfo);
    const float* a = arguments.a->x;
    const float* b = arguments.b->x;
    Vector* result = elementwise(arguments, [](float left, float right) { return left * right; });
    for (std::size_t i = 0; i < arguments.dim; ++i) {
        if (result->x[i] == 0 && a[i] != 0 && b[i] != 0) float_underflow_error();
    }
    PG_RETURN_VECTOR(result);
}

// Put one after the other.
PGWARP_FUNCTION(vector_concat)
{
    const Vector* a = PG_GETARG_VECTOR(0);
    const Vector* b = PG_GETARG_VECTOR(1);
    const int dim = a->dim + b->dim;
    check_dim(dim);
    Vector* result = make_vector(dim);
    memcpy(result->x, a->x, sizeof(float) * static_cast<Size>(a->dim));
    memcpy(result->x + a->dim, b->x, sizeof(float) * static_cast<Size>(b->dim));
    PG_RETURN_VECTOR(result);
}

// Make a bit of each element: set when it is above zero.
PGWARP_FUNCTION(binary_quantize)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    VarBit* result = static_cast<VarBit*>(palloc0(VARBITTOTALLEN(vector->dim)));
    SET_VARSIZE(result, VARBITTOTALLEN(vector->dim));
    VARBITLEN(result) = vector->dim;
    unsigned char* bits = VARBITS(result);
    for (int i = 0; i < vector->dim; ++i) {
        if (vector->x[i] > 0) bits[i / 8] |= static_cast<unsigned char>(0x80 >> (i % 8));
    }
    PG_RETURN_VARBIT_P(result);
}

// Cut a part out, as substring does with text: what lies outside is left out.
PGWARP_FUNCTION(subvector)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    int32 start = PG_GETARG_INT32(1);
    const int32 count = PG_GETARG_INT32(2);
    if (count < 1) check_dim(0);
    // One past the end; 64 bits hold every sum.
    int64 end = static_cast<int64>(start) + count;
    if (end > vector->dim + 1) end = vector->dim + 1;
    if (start < 1) start = 1;
    check_dim(end > start ? static_cast<int>(end - start) : 0);
    Vector* result = make_vector(static_cast<int>(end - start));
    memcpy(result->x, vector->x + (start - 1), sizeof(float) * static_cast<Size>(result->dim));
    PG_RETURN_VECTOR(result);
}
