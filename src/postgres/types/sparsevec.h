// The type `sparsevec`, vectors that keep the elements that are not zero: the same layout on disk and on the wire as
// pgvector's.
#pragma once

#include "postgres/postgres_headers.h"

#include <cstddef>

#include "numeric/sparse_distance.h"

namespace pgwarp
{

struct SparseVector {
    int32 vl_len_;  // varlena header, not to be touched directly
    int32 dim;
    int32 nnz;                              // the number of elements that are not zero
    int32 unused;                           // always 0
    uint32 indices[FLEXIBLE_ARRAY_MEMBER];  // [nnz], ascending, each once, from 0; float values[nnz] follow
};
static_assert(offsetof(SparseVector, dim) == 4 && offsetof(SparseVector, indices) == 16);

inline constexpr int sparsevec_max_dim = 1000000000;
inline constexpr int sparsevec_max_nnz = 16000;

inline float* sparsevec_values(SparseVector* vector)
{
    return reinterpret_cast<float*>(vector->indices + vector->nnz);
}
inline const float* sparsevec_values(const SparseVector* vector)
{
    return reinterpret_cast<const float*>(vector->indices + vector->nnz);
}

// The vector's elements, in its own memory.
inline SparseView view_sparsevec(const SparseVector* vector)
{
    return {vector->indices, sparsevec_values(vector), static_cast<std::size_t>(vector->nnz)};
}

// Detoasts a datum; the result may be a copy in the current memory context.
inline SparseVector* datum_get_sparsevec(Datum datum)
{
    return reinterpret_cast<SparseVector*>(PG_DETOAST_DATUM(datum));
}

// Returns the bytes of a vector with its header.
inline Size sparsevec_size(int nnz)
{
    return offsetof(SparseVector, indices) + (sizeof(uint32) + sizeof(float)) * static_cast<Size>(nnz);
}

// Makes a zeroed vector in the current memory context.
inline SparseVector* make_sparsevec(int dim, int nnz)
{
    const Size size = sparsevec_size(nnz);
    auto* vector = static_cast<SparseVector*>(palloc0(size));
    SET_VARSIZE(vector, size);
    vector->dim = dim;
    vector->nnz = nnz;
    return vector;
}

// Raises 22000 "sparsevec must have at least 1 dimension" or 54000 "sparsevec cannot have more than ... dimensions".
void check_sparsevec_dim(int dim);
// Raises 54000 for more elements than a sparsevec may have, or than it has dimensions.
void check_sparsevec_nnz(int nnz, int dim);
// Raises 22000 for NaN and infinities.
void check_sparsevec_element(float value);

}  // namespace pgwarp

#define PG_GETARG_SPARSEVEC(n) pgwarp::datum_get_sparsevec(PG_GETARG_DATUM(n))
#define PG_RETURN_SPARSEVEC(v) PG_RETURN_POINTER(v)
