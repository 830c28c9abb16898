// (score, id) packed into one 64-bit key whose unsigned order is the order of selection: by score, ties by smaller id.
#pragma once

#include <cfloat>
#include <cstdint>

namespace pgwarp::cuda
{

using SelectKey = unsigned long long;

inline constexpr std::uint32_t padding_id = 0xffffffffu;
// What fills a result with fewer than k candidates: (+infinity, padding_id). Above every key that can be selected.
inline constexpr SelectKey padding_key = 0xff800000ffffffffull;

// Not for NaN or +infinity: those are never selected, callers compare against a finite bound first. -0 becomes +0,
// which it equals.
__device__ __forceinline__ SelectKey make_key(float score, std::uint32_t id)
{
    const std::uint32_t bits = __float_as_uint(score + 0.0f);
    const std::uint32_t ordered =
        bits ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31) | 0x80000000u);
    return static_cast<SelectKey>(ordered) << 32 | id;
}

__device__ __forceinline__ float key_score(SelectKey key)
{
    const auto ordered = static_cast<std::uint32_t>(key >> 32);
    return __uint_as_float(ordered ^ ((ordered & 0x80000000u) != 0 ? 0x80000000u : 0xffffffffu));
}

__device__ __forceinline__ std::uint32_t key_id(SelectKey key)
{
    return static_cast<std::uint32_t>(key);
}

// The largest score that a key below `key` can have; FLT_MAX for padding, so that `score <= key_bound` also rejects NaN
// and +infinity.
__device__ __forceinline__ float key_bound(SelectKey key)
{
    return fminf(key_score(key), FLT_MAX);
}

}  // namespace pgwarp::cuda
