// The types `vector` (of float) and `halfvec` (of binary16): the same layout on disk and on the wire as pgvector's.
// Templates over the element type serve both; without a template argument they are for `vector`.
#pragma once

#include "postgres/postgres_headers.h"

#include <cstddef>

#include "numeric/half.h"
#include "protocol/format.h"

namespace pgwarp
{

template <class Element>
struct VectorOf {
    int32 vl_len_;  // varlena header, not to be touched directly
    int16 dim;
    int16 unused;  // always 0
    Element x[FLEXIBLE_ARRAY_MEMBER];
};
using Vector = VectorOf<float>;
using HalfVector = VectorOf<half_bits>;
static_assert(offsetof(Vector, dim) == 4 && offsetof(Vector, x) == 8 && offsetof(HalfVector, x) == 8);

inline constexpr int vector_max_dim = static_cast<int>(max_dimensions);
static_assert(vector_max_dim == 16000);

// The type's name in messages.
template <class Element>
inline constexpr const char* vector_type_name = "vector";
template <>
inline constexpr const char* vector_type_name<half_bits> = "halfvec";

// Returns the exact value of an element.
inline float element_value(float element)
{
    return element;
}
inline float element_value(half_bits element)
{
    return float_of_half(element);
}

// Returns the nearest element, which may be infinite.
template <class Element>
Element make_element(float value);
template <>
inline float make_element<float>(float value)
{
    return value;
}
template <>
inline half_bits make_element<half_bits>(float value)
{
    return half_of_float(value);
}

// Returns the bytes of a vector with its header.
template <class Element = float>
Size vector_size(int dim)
{
    return offsetof(VectorOf<Element>, x) + sizeof(Element) * static_cast<Size>(dim);
}

// Detoasts a datum; the result may be a copy in the current memory context.
template <class Element = float>
VectorOf<Element>* datum_get_vector(Datum datum)
{
    void* stored = DatumGetPointer(datum);
    if (VARATT_IS_EXTENDED(stored)) stored = PG_DETOAST_DATUM(datum);
    return static_cast<VectorOf<Element>*>(stored);
}

// Makes a zeroed vector in the current memory context.
template <class Element = float>
VectorOf<Element>* make_vector(int dim)
{
    const Size size = vector_size<Element>(dim);
    auto* vector = static_cast<VectorOf<Element>*>(palloc0(size));
    SET_VARSIZE(vector, size);
    vector->dim = static_cast<int16>(dim);
    return vector;
}

// Raises 22000 "vector must have at least 1 dimension" or 54000 "vector cannot have more than 16000 dimensions".
template <class Element = float>
void check_dim(int dim);
// Raises 22000 "expected %d dimensions, not %d" unless typmod is -1 or equals dim.
void check_expected_dim(int32 typmod, int dim);
[[noreturn]] void refuse_different_dims(const char* type, int a, int b);
// Raises 22000 "different vector dimensions %d and %d".
template <class Element>
void check_same_dims(const VectorOf<Element>* a, const VectorOf<Element>* b)
{
    if (a->dim != b->dim) refuse_different_dims(vector_type_name<Element>, a->dim, b->dim);
}
// Raises 22000 for NaN and infinities.
template <class Element>
void check_element(Element element);
// Returns the nearest element. Raises 22003 for a value out of the type's range, 22000 for NaN and infinities.
template <class Element>
Element checked_element(float value);

}  // namespace pgwarp

#define PG_GETARG_VECTOR(n) pgwarp::datum_get_vector(PG_GETARG_DATUM(n))
#define PG_RETURN_VECTOR(v) PG_RETURN_POINTER(v)

// Defines the same function for vectors and halfvecs from a template over the element type that takes fcinfo.
#define PGWARP_VECTOR_FUNCTION(vector_name, halfvec_name, function) \
    PGWARP_FUNCTION(vector_name)                                    \
    {                                                               \
        return function<float>(fcinfo);                             \
    }                                                               \
    PGWARP_FUNCTION(halfvec_name)                                   \
    {                                                               \
        return function<pgwarp::half_bits>(fcinfo);                 \
    }
