// The `vector` type: the same layout on disk and on the wire as pgvector's.
#pragma once

#include "postgres/postgres_headers.h"

#include <cstddef>

#include "protocol/format.h"

namespace pgwarp
{

struct Vector {
    int32 vl_len_;  // varlena header, not to be touched directly
    int16 dim;
    int16 unused;  // always 0
    float x[FLEXIBLE_ARRAY_MEMBER];
};
static_assert(offsetof(Vector, dim) == 4 && offsetof(Vector, x) == 8);

inline constexpr int vector_max_dim = static_cast<int>(max_dimensions);
static_assert(vector_max_dim == 16000);

inline Size vector_size(int dim)
{
    return offsetof(Vector, x) + sizeof(float) * static_cast<Size>(dim);
}

// Detoasts; the result may be a copy in the current memory context.
inline Vector* datum_get_vector(Datum datum)
{
    void* stored = DatumGetPointer(datum);
    if (VARATT_IS_EXTENDED(stored)) stored = PG_DETOAST_DATUM(datum);
    return static_cast<Vector*>(stored);
}

// A zeroed vector in the current memory context.
Vector* make_vector(int dim);

// 22000 "vector must have at least 1 dimension" / 54000 "vector cannot have more than 16000 dimensions".
void check_dim(int dim);
// 22000 "expected %d dimensions, not %d" unless typmod is -1.
void check_expected_dim(int32 typmod, int dim);
[[noreturn]] void refuse_different_dims(const Vector* a, const Vector* b);
// 22000 "different vector dimensions %d and %d".
inline void check_same_dims(const Vector* a, const Vector* b)
{
    if (a->dim != b->dim) refuse_different_dims(a, b);
}
// 22000 for NaN and infinities.
void check_element(float value);

}  // namespace pgwarp

#define PG_GETARG_VECTOR(n) pgwarp::datum_get_vector(PG_GETARG_DATUM(n))
#define PG_RETURN_VECTOR(v) PG_RETURN_POINTER(v)
