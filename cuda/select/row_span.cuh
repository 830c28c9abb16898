// A range of columns of one row, read as 16-byte vectors for any alignment of the row.
#pragma once

#include <cmath>
#include <cstdint>

#include "select/key.cuh"

namespace pgwarp::cuda
{

struct SelectInput {
    const float* values;
    const std::uint32_t* ids;  // null: the column is the id
    std::int64_t stride;
};

// Positions count from the 32-byte boundary at or before the first column, so that a sector is eight positions.
template <bool with_ids>
class RowSpan
{
public:
    __device__ RowSpan(const SelectInput& input, std::int64_t row, std::uint32_t first_column, std::uint32_t columns)
    {
        const float* values = input.values + row * input.stride + first_column;
        begin_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(values) / sizeof(float)) % 8;
        end_ = begin_ + columns;
        base_ = values - begin_;
        first_column_ = first_column - begin_;
        if constexpr (with_ids) ids_ = input.ids + row * input.stride + first_column - begin_;
    }

    __device__ std::uint32_t end() const { return end_; }
    __device__ std::uint32_t first_whole_sector() const { return (begin_ + 7) / 8; }
    __device__ std::uint32_t whole_sectors() const { return end_ / 8 - first_whole_sector(); }

    // Four scores from position 4 * vector; +infinity outside the span.
    __device__ __forceinline__ float4 load(std::uint32_t vector) const
    {
        const std::uint32_t position = 4 * vector;
        if (position >= begin_ && position + 4 <= end_) return load_inside(vector);
        return make_float4(load_one(position), load_one(position + 1), load_one(position + 2), load_one(position + 3));
    }
    // The four scores of a vector that lies inside the span.
    __device__ __forceinline__ float4 load_inside(std::uint32_t vector) const
    {
        return __ldcs(reinterpret_cast<const float4*>(base_) + vector);
    }
    // Loads the vectors `vector`, `vector + step` and so on. The lanes of a warp must pass neighbouring vectors.
    template <int scores>
    __device__ __forceinline__ void load_tile(float (&out)[scores], std::uint32_t vector, std::uint32_t step) const
    {
        const bool inside = 4 * vector >= begin_ && 4 * (vector + (scores / 4 - 1) * step) + 4 <= end_;
        float4* vectors = reinterpret_cast<float4*>(out);
        if (__all_sync(0xffffffffu, inside)) {
#pragma unroll
            for (int i = 0; i < scores / 4; i++) vectors[i] = load_inside(vector + i * step);
        } else {
#pragma unroll
            for (int i = 0; i < scores / 4; i++) vectors[i] = load(vector + i * step);
        }
    }

    __device__ __forceinline__ std::uint32_t id(std::uint32_t position) const
    {
        if constexpr (with_ids) return __ldg(ids_ + position);
        return first_column_ + position;
    }

private:
    __device__ __forceinline__ float load_one(std::uint32_t position) const
    {
        return position >= begin_ && position < end_ ? base_[position] : INFINITY;
    }

    const float* base_;
    const std::uint32_t* ids_ = nullptr;
    std::uint32_t begin_, end_, first_column_;
};

}  // namespace pgwarp::cuda
