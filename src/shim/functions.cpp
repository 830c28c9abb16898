// The C functions of pgvector's SQL, under pgvector's names, so that catalogs which pgvector's package made work with
// this one. Each calls pgwarp.so's function.
#include "postgres/fmgr_cpp.h"

namespace
{

PGFunction load_own(const char* name)
{
    return reinterpret_cast<PGFunction>(load_external_function("$libdir/pgwarp", name, true, nullptr));
}

}  // namespace

// Defines NAME, which calls OWN of pgwarp.so.
#define FORWARD_TO(name, own_name)                    \
    PGWARP_FUNCTION(name)                             \
    {                                                 \
        static PGFunction own = nullptr;              \
        if (own == nullptr) own = load_own(own_name); \
        return own(fcinfo);                           \
    }
#define FORWARD(name) FORWARD_TO(name, "pgwarp_" #name)

FORWARD(array_to_halfvec)
FORWARD(array_to_sparsevec)
FORWARD(array_to_vector)
FORWARD(binary_quantize)
FORWARD(cosine_distance)
FORWARD(halfvec)
FORWARD(halfvec_accum)
FORWARD(halfvec_add)
FORWARD(halfvec_avg)
FORWARD(halfvec_binary_quantize)
FORWARD(halfvec_cmp)
FORWARD(halfvec_concat)
FORWARD(halfvec_cosine_distance)
FORWARD(halfvec_eq)
FORWARD(halfvec_ge)
FORWARD(halfvec_gt)
FORWARD(halfvec_in)
FORWARD(halfvec_inner_product)
FORWARD(halfvec_l1_distance)
FORWARD(halfvec_l2_distance)
FORWARD(halfvec_l2_norm)
FORWARD(halfvec_l2_normalize)
FORWARD(halfvec_l2_squared_distance)
FORWARD(halfvec_le)
FORWARD(halfvec_lt)
FORWARD(halfvec_mul)
FORWARD(halfvec_ne)
FORWARD(halfvec_negative_inner_product)
FORWARD(halfvec_out)
FORWARD(halfvec_recv)
FORWARD(halfvec_send)
FORWARD(halfvec_spherical_distance)
FORWARD(halfvec_sub)
FORWARD(halfvec_subvector)
FORWARD(halfvec_to_float4)
FORWARD(halfvec_to_sparsevec)
FORWARD(halfvec_to_vector)
FORWARD(halfvec_typmod_in)
FORWARD(halfvec_vector_dims)
FORWARD(hamming_distance)
FORWARD(inner_product)
FORWARD(jaccard_distance)
FORWARD(l1_distance)
FORWARD(l2_distance)
FORWARD(l2_normalize)
FORWARD(sparsevec)
FORWARD(sparsevec_cmp)
FORWARD(sparsevec_cosine_distance)
FORWARD(sparsevec_eq)
FORWARD(sparsevec_ge)
FORWARD(sparsevec_gt)
FORWARD(sparsevec_in)
FORWARD(sparsevec_inner_product)
FORWARD(sparsevec_l1_distance)
FORWARD(sparsevec_l2_distance)
FORWARD(sparsevec_l2_norm)
FORWARD(sparsevec_l2_normalize)
FORWARD(sparsevec_l2_squared_distance)
FORWARD(sparsevec_le)
FORWARD(sparsevec_lt)
FORWARD(sparsevec_ne)
FORWARD(sparsevec_negative_inner_product)
FORWARD(sparsevec_out)
FORWARD(sparsevec_recv)
FORWARD(sparsevec_send)
FORWARD(sparsevec_to_halfvec)
FORWARD(sparsevec_to_vector)
FORWARD(sparsevec_typmod_in)
FORWARD(subvector)
FORWARD(vector)
FORWARD(vector_accum)
FORWARD(vector_add)
FORWARD(vector_avg)
FORWARD(vector_cmp)
FORWARD(vector_combine)
FORWARD(vector_concat)
FORWARD(vector_dims)
FORWARD(vector_eq)
FORWARD(vector_ge)
FORWARD(vector_gt)
FORWARD(vector_in)
FORWARD(vector_l2_squared_distance)
FORWARD(vector_le)
FORWARD(vector_lt)
FORWARD(vector_mul)
FORWARD(vector_ne)
FORWARD(vector_negative_inner_product)
FORWARD(vector_norm)
FORWARD(vector_out)
FORWARD(vector_recv)
FORWARD(vector_send)
FORWARD(vector_spherical_distance)
FORWARD(vector_sub)
FORWARD(vector_to_float4)
FORWARD(vector_to_halfvec)
FORWARD(vector_to_sparsevec)
FORWARD(vector_typmod_in)
FORWARD_TO(hnswhandler, "pgwarp_hnsw_handler")
FORWARD_TO(ivfflathandler, "pgwarp_ivfflat_handler")

// Operator classes name these functions of pgvector, which tell its access methods of the element type. Those of
// pgwarp.so know it by the distance.
#define UNUSED_SUPPORT(name)        \
    PGWARP_FUNCTION(name)           \
    {                               \
        PG_RETURN_POINTER(nullptr); \
    }
UNUSED_SUPPORT(hnsw_bit_support)
UNUSED_SUPPORT(hnsw_halfvec_support)
UNUSED_SUPPORT(hnsw_sparsevec_support)
UNUSED_SUPPORT(ivfflat_bit_support)
UNUSED_SUPPORT(ivfflat_halfvec_support)
