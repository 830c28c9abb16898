// Distances, arithmetic and parts of vectors and halfvecs.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <bit>
#include <cmath>

#include "numeric/metric.h"

extern "C" {
#include "utils/float.h"
#include "utils/varbit.h"
}

namespace pgwarp
{

namespace
{

template <class Element>
struct Arguments {
    const VectorOf<Element>* a;
    const VectorOf<Element>* b;
    std::size_t dim;
};

template <class Element>
VectorOf<Element>* vector_argument(FunctionCallInfo fcinfo, int n)
{
    return datum_get_vector<Element>(PG_GETARG_DATUM(n));
}

// Returns both arguments; raises an error unless their dimensions are the same.
template <class Element>
Arguments<Element> two_vectors(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* a = vector_argument<Element>(fcinfo, 0);
    const VectorOf<Element>* b = vector_argument<Element>(fcinfo, 1);
    check_same_dims(a, b);
    return {a, b, static_cast<std::size_t>(a->dim)};
}

// Return the canonical distance of the two arguments.
template <class Element, Metric metric>
Datum distance_of_arguments(FunctionCallInfo fcinfo)
{
    const Arguments<Element> arguments = two_vectors<Element>(fcinfo);
    PG_RETURN_FLOAT8(canonical_distance(metric, arguments.a->x, arguments.b->x, arguments.dim));
}

template <class Element>
Datum l2_distance_of(FunctionCallInfo fcinfo)
{
    return distance_of_arguments<Element, Metric::l2>(fcinfo);
}

template <class Element>
Datum l1_distance_of(FunctionCallInfo fcinfo)
{
    return distance_of_arguments<Element, Metric::l1>(fcinfo);
}

template <class Element>
Datum cosine_distance_of(FunctionCallInfo fcinfo)
{
    return distance_of_arguments<Element, Metric::cosine>(fcinfo);
}

// Return the negative inner product, which orders rows.
template <class Element>
Datum negative_inner_product(FunctionCallInfo fcinfo)
{
    return distance_of_arguments<Element, Metric::inner_product>(fcinfo);
}

template <class Element>
Datum inner_product_of(FunctionCallInfo fcinfo)
{
    const Arguments<Element> arguments = two_vectors<Element>(fcinfo);
    PG_RETURN_FLOAT8(canonical_dot(arguments.a->x, arguments.b->x, arguments.dim));
}

template <class Element>
Datum l2_squared_distance(FunctionCallInfo fcinfo)
{
    const Arguments<Element> arguments = two_vectors<Element>(fcinfo);
    PG_RETURN_FLOAT8(canonical_l2_squared(arguments.a->x, arguments.b->x, arguments.dim));
}

// Return the angle between two unit vectors, as a share of pi.
template <class Element>
Datum spherical_distance(FunctionCallInfo fcinfo)
{
    const Arguments<Element> arguments = two_vectors<Element>(fcinfo);
    double product = canonical_dot(arguments.a->x, arguments.b->x, arguments.dim);
    if (product > 1) product = 1;
    if (product < -1) product = -1;
    PG_RETURN_FLOAT8(std::acos(product) / M_PI);
}

template <class Element>
Datum dimensions_of(FunctionCallInfo fcinfo)
{
    PG_RETURN_INT32(vector_argument<Element>(fcinfo, 0)->dim);
}

template <class Element>
double norm_of(const VectorOf<Element>* vector)
{
    return canonical_norm(vector->x, static_cast<std::size_t>(vector->dim));
}

template <class Element>
Datum norm_of_argument(FunctionCallInfo fcinfo)
{
    PG_RETURN_FLOAT8(norm_of(vector_argument<Element>(fcinfo, 0)));
}

// Whether an element is infinite, by comparing integers: compilers vectorise that, but not a comparison of floats.
bool is_infinite(float element)
{
    return (std::bit_cast<int32>(element) & 0x7fffffff) > 0x7f7fffff;
}
bool is_infinite(half_bits element)
{
    return (element & 0x7fff) > 0x7bff;
}

template <class Element>
void check_overflow(const VectorOf<Element>* vector)
{
    const int dim = vector->dim;
    int32 overflow = 0;
    for (int i = 0; i < dim; ++i) overflow |= is_infinite(vector->x[i]) ? 1 : 0;
    if (overflow != 0) float_overflow_error();
}

// Scale to unit norm; a zero vector is returned unchanged.
template <class Element>
Datum normalised(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = vector_argument<Element>(fcinfo, 0);
    const double norm = norm_of(vector);
    VectorOf<Element>* result = make_vector<Element>(vector->dim);
    if (norm > 0) {
        for (int i = 0; i < vector->dim; ++i) {
            result->x[i] = make_element<Element>(static_cast<float>(element_value(vector->x[i]) / norm));
        }
        check_overflow(result);
    }
    PG_RETURN_VECTOR(result);
}

// Apply `operation` to each pair of elements; an overflow is an error. Sums, differences and products of halves are
// correctly rounded, because a float has more than twice the digits of a half.
template <class Element, class Operation>
VectorOf<Element>* elementwise(const Arguments<Element>& arguments, Operation operation)
{
    const int dim = arguments.a->dim;
    const Element* a = arguments.a->x;
    const Element* b = arguments.b->x;
    VectorOf<Element>* result = make_vector<Element>(dim);
    for (int i = 0; i < dim; ++i) {
        result->x[i] = make_element<Element>(operation(element_value(a[i]), element_value(b[i])));
    }
    check_overflow(result);
    return result;
}

template <class Element>
Datum add(FunctionCallInfo fcinfo)
{
    PG_RETURN_VECTOR(elementwise(two_vectors<Element>(fcinfo), [](float a, float b) { return a + b; }));
}

template <class Element>
Datum subtract(FunctionCallInfo fcinfo)
{
    PG_RETURN_VECTOR(elementwise(two_vectors<Element>(fcinfo), [](float a, float b) { return a - b; }));
}

// Multiply element by element; unlike a sum, a product may underflow, which is an error too.
template <class Element>
Datum multiply(FunctionCallInfo fcinfo)
{
    const Arguments<Element> arguments = two_vectors<Element>(fcinfo);
    const auto is_zero = [](Element element) { return element_value(element) == 0; };
    const Element* a = arguments.a->x;
    const Element* b = arguments.b->x;
    VectorOf<Element>* result = elementwise(arguments, [](float left, float right) { return left * right; });
    for (std::size_t i = 0; i < arguments.dim; ++i) {
        if (is_zero(result->x[i]) && !is_zero(a[i]) && !is_zero(b[i])) float_underflow_error();
    }
    PG_RETURN_VECTOR(result);
}

template <class Element>
Datum concatenate(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* a = vector_argument<Element>(fcinfo, 0);
    const VectorOf<Element>* b = vector_argument<Element>(fcinfo, 1);
    const int dim = a->dim + b->dim;
    check_dim<Element>(dim);
    VectorOf<Element>* result = make_vector<Element>(dim);
    memcpy(result->x, a->x, sizeof(Element) * static_cast<Size>(a->dim));
    memcpy(result->x + a->dim, b->x, sizeof(Element) * static_cast<Size>(b->dim));
    PG_RETURN_VECTOR(result);
}

// Make one bit for each element: 1 if the element is above zero.
template <class Element>
Datum quantize_to_bits(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = vector_argument<Element>(fcinfo, 0);
    VarBit* result = static_cast<VarBit*>(palloc0(VARBITTOTALLEN(vector->dim)));
    SET_VARSIZE(result, VARBITTOTALLEN(vector->dim));
    VARBITLEN(result) = vector->dim;
    unsigned char* bits = VARBITS(result);
    for (int i = 0; i < vector->dim; ++i) {
        if (element_value(vector->x[i]) > 0) bits[i / 8] |= static_cast<unsigned char>(0x80 >> (i % 8));
    }
    PG_RETURN_VARBIT_P(result);
}

// Cut out a part, as substring does with text: positions outside the vector are ignored.
template <class Element>
Datum cut_part(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = vector_argument<Element>(fcinfo, 0);
    int32 start = PG_GETARG_INT32(1);
    const int32 count = PG_GETARG_INT32(2);
    if (count < 1) check_dim<Element>(0);
    // The position after the end; 64 bits hold every sum.
    int64 end = static_cast<int64>(start) + count;
    if (end > vector->dim + 1) end = vector->dim + 1;
    if (start < 1) start = 1;
    check_dim<Element>(end > start ? static_cast<int>(end - start) : 0);
    VectorOf<Element>* result = make_vector<Element>(static_cast<int>(end - start));
    memcpy(result->x, vector->x + (start - 1), sizeof(Element) * static_cast<Size>(result->dim));
    PG_RETURN_VECTOR(result);
}

}  // namespace
}  // namespace pgwarp

PGWARP_VECTOR_FUNCTION(pgwarp_l2_distance, pgwarp_halfvec_l2_distance, pgwarp::l2_distance_of)
PGWARP_VECTOR_FUNCTION(pgwarp_l1_distance, pgwarp_halfvec_l1_distance, pgwarp::l1_distance_of)
PGWARP_VECTOR_FUNCTION(pgwarp_cosine_distance, pgwarp_halfvec_cosine_distance, pgwarp::cosine_distance_of)
PGWARP_VECTOR_FUNCTION(pgwarp_inner_product, pgwarp_halfvec_inner_product, pgwarp::inner_product_of)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_negative_inner_product, pgwarp_halfvec_negative_inner_product,
                       pgwarp::negative_inner_product)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_l2_squared_distance, pgwarp_halfvec_l2_squared_distance,
                       pgwarp::l2_squared_distance)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_spherical_distance, pgwarp_halfvec_spherical_distance, pgwarp::spherical_distance)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_dims, pgwarp_halfvec_vector_dims, pgwarp::dimensions_of)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_norm, pgwarp_halfvec_l2_norm, pgwarp::norm_of_argument)
PGWARP_VECTOR_FUNCTION(pgwarp_l2_normalize, pgwarp_halfvec_l2_normalize, pgwarp::normalised)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_add, pgwarp_halfvec_add, pgwarp::add)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_sub, pgwarp_halfvec_sub, pgwarp::subtract)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_mul, pgwarp_halfvec_mul, pgwarp::multiply)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_concat, pgwarp_halfvec_concat, pgwarp::concatenate)
PGWARP_VECTOR_FUNCTION(pgwarp_binary_quantize, pgwarp_halfvec_binary_quantize, pgwarp::quantize_to_bits)
PGWARP_VECTOR_FUNCTION(pgwarp_subvector, pgwarp_halfvec_subvector, pgwarp::cut_part)
