// (score, id) packed into one 64-bit key whose unsigned order is the order of selection: by score, ties by smaller id.
#pragma once

#include <cfloat>
#include <cstdint>

#include "select/order_bits.h"

namespace pgwarp::cuda
{

using SelectKey = unsigned long long;

inline constexpr std::uint32_t padding_id = 0xffffffffu;
// Fills results with fewer than k candidates: (+infinity, padding_id). Above every key that can be selected.
inline constexpr SelectKey padding_key = 0xff800000ffffffffull;

// The caller must compare against a finite bound first: the keys of NaN and +infinity are not valid. -0 becomes +0.
__device__ __forceinline__ SelectKey make_key(float score, std::uint32_t id)
{
    return static_cast<SelectKey>(order_of(score + 0.0f)) << 32 | id;
}

__device__ __forceinline__ float key_score(SelectKey key)
{
    return float_of_order(static_cast<std::uint32_t>(key >> 32));
}

__device__ __forceinline__ std::uint32_t key_id(SelectKey key)
{
    return static_cast<std::uint32_t>(key);
}

// The largest score of keys below `key`; FLT_MAX for padding, so that `score <= key_bound` also rejects NaN and
// +infinity.
__device__ __forceinline__ float key_bound(SelectKey key)
{
    return fminf(key_score(key), FLT_MAX);
}

}  // namespace pgwarp::cuda
