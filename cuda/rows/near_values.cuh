// The choice of the rows whose values are computed: the `wanted` nearest of a query's proposals, and those that
// rounding could confuse with them. Values in single precision come with an error bound; values in double precision,
// whose bits are those of the CPU, take some ten times as long.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "numeric/metric.h"
#include "rows/view.h"
#include "select/block_rank.cuh"
#include "select/key.cuh"
#include "select/order_bits.h"
#include "select/warp.cuh"

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t piece_elements = 8;  // that a lane reads together
inline constexpr std::uint32_t row_lanes = 16;      // lanes that share a row
inline constexpr std::uint32_t spare_rows = 16;     // fewer than that are not worth a choice

// Whether near_rows() serves the rows of an index: their vectors are on the device, and a value depends on the row only
// by a sum over its elements.
inline bool has_near_values(const ResidentRows& resident)
{
    if (resident.full != nullptr) return resident.metric != Metric::cosine && resident.dimensions % 4 == 0;
    return resident.half.rows != nullptr;
}

// Shared memory of a block. The query and the mean are padded with zeros to whole pieces.
struct NearSpace {
    const float* query;
    const float* mean;  // of halves
    float* lowest;      // [count]: bounds of the sums
    float* highest;     // [count]
    RankShared* select;
    double norm = 0;  // of the query, where values of halves depend on it
};

// Values of halves are bounds: near rows have one value where their bounds are cut off, or are rounded to the same
// number. Such rows are in the order of their numbers, whatever their sums.
struct TiedSums {
    float below = -FLT_MAX;  // sums up to this have one value
    float apart = FLT_MIN;   // sums of other values differ by twice that; terms below FLT_MIN have fewer bits
};
__device__ inline TiedSums tied_sums(const ResidentRows& resident, double norm)
{
    constexpr double rounding = 5e-16;  // some units in the last place of 1
    constexpr float length_rounding = 4e-6F;
    // The length of stored vectors is rounded too.
    if (resident.full != nullptr) return {-FLT_MAX, resident.metric == Metric::cosine ? length_rounding : FLT_MIN};
    const double error = resident.half.error;
    if (resident.metric == Metric::l2) return {static_cast<float>(error * error * (1 + 1e-5)), FLT_MIN};
    const double scale = resident.metric == Metric::cosine ? 2 + error : norm * error;
    return {-FLT_MAX, static_cast<float>(scale * rounding) + FLT_MIN};
}

namespace detail
{

struct HalfRows {
    const __half* rows;
    std::size_t stride;
    float inverse;  // of the scale

    using Piece = uint4;
    __device__ Piece read(std::uint32_t position, std::uint32_t d) const
    {
        return *reinterpret_cast<const uint4*>(rows + position * stride + d);
    }
    // Rounds as decoded_half() does. What is out of range there is infinite here.
    __device__ void decode(const Piece& piece, const float* mean, float* out) const
    {
        const std::uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
            out[2 * i] = __fadd_rn(__fmul_rn(two.x, inverse), mean[2 * i]);
            out[2 * i + 1] = __fadd_rn(__fmul_rn(two.y, inverse), mean[2 * i + 1]);
        }
    }
};

struct FullRows {
    const float* rows;
    std::uint32_t dimensions;
    const std::uint32_t* row_at;

    struct Piece {
        float4 low;
        float4 high;
    };
    __device__ Piece read(std::uint32_t position, std::uint32_t d) const
    {
        const float* row = rows + std::size_t{row_at[position]} * dimensions + d;
        const float4 low = *reinterpret_cast<const float4*>(row);
        return {low, d + 4 < dimensions ? *reinterpret_cast<const float4*>(row + 4) : float4{0, 0, 0, 0}};
    }
    __device__ void decode(const Piece& piece, const float*, float* out) const
    {
        const float all[piece_elements] = {piece.low.x,  piece.low.y,  piece.low.z,  piece.low.w,
                                           piece.high.x, piece.high.y, piece.high.z, piece.high.w};
#pragma unroll
        for (int i = 0; i < piece_elements; ++i) out[i] = all[i];
    }
};

// A sum over the elements of a row, and the sum of its terms' magnitudes.
struct NearSum {
    float sum = 0;
    float magnitude = 0;

    __device__ void add(bool squared, float x, float y)
    {
        if (squared) {
            sum += (x - y) * (x - y);
        } else {
            sum -= x * y;
            magnitude += fabsf(x * y);
        }
    }
};

// Rows in bytes of a scale for each row, relative to a mean row. The query is moved by the mean where differences are
// squared.
struct ByteRows {
    const std::int8_t* rows;  // [rows][stride]
    const float2* terms;      // [rows]: x the scale
    std::uint32_t stride;
    float root_of_dimensions;

    struct Piece {
        uint2 bytes;
        float scale;
    };
    __device__ Piece read(std::uint32_t row, std::uint32_t d) const
    {
        return {*reinterpret_cast<const uint2*>(rows + std::size_t{row} * stride + d), terms[row].x};
    }
    __device__ void decode(const Piece& piece, const float*, float* out) const
    {
#pragma unroll
        for (int i = 0; i < piece_elements; ++i) {
            const std::uint32_t word = i < 4 ? piece.bytes.x : piece.bytes.y;
            out[i] = piece.scale * static_cast<float>(static_cast<std::int8_t>(word >> (8 * (i % 4))));
        }
    }
    // The longest distance of a row from its bytes: half a step in each dimension, and some rounding.
    __device__ float distance(std::uint32_t row) const
    {
        return 0.501F * terms[row].x * root_of_dimensions;
    }
};

// Widens the bounds of the sum of a row's other form, that lies so far away: by that distance where sums are squares.
__device__ inline void widen_sum(bool squared, float distance, float& low, float& high)
{
    constexpr float rounding = 1e-6F;
    if (!squared) {
        low -= distance;
        high += distance;
        return;
    }
    const float nearest = sqrtf(fmaxf(low, 0.0F)) * (1 - rounding) - distance;
    const float farthest = sqrtf(high) * (1 + rounding) + distance;
    low = nearest > 0 ? nearest * nearest * (1 - rounding) : 0;
    high = farthest * farthest * (1 + rounding);
}

// Writes the bounds of the sums of rows positions[0, count): squared differences from the query, or negative products.
// apart: of TiedSums.
template <int Threads, class Rows>
__device__ void bound_sums(const Rows& rows, bool squared, std::uint32_t dimensions, const std::uint32_t* positions,
                           std::uint32_t count, float apart, const NearSpace& space)
{
    constexpr std::uint32_t at_once = Threads / row_lanes;
    constexpr std::uint32_t rows_together = Threads > 256 ? 8 : 4;  // rows of a lane that are read together
    const std::uint32_t lane = threadIdx.x % row_lanes;
    // Twice the bound of a sum of that many terms in a lane, and over the lanes.
    const float relative = static_cast<float>(dimensions / row_lanes + 16) * 1.2e-7F;
    for (std::uint32_t base = threadIdx.x / 32 * (32 / row_lanes); base < count; base += at_once * rows_together) {
        const std::uint32_t first = base + threadIdx.x % 32 / row_lanes;
        NearSum sums[rows_together];
        for (std::uint32_t d = lane * piece_elements; d < dimensions; d += row_lanes * piece_elements) {
            typename Rows::Piece pieces[rows_together];
#pragma unroll
            for (std::uint32_t j = 0; j < rows_together; ++j)
                pieces[j] = rows.read(positions[min(first + j * at_once, count - 1)], d);
            float query[piece_elements];
            float mean[piece_elements];
#pragma unroll
            for (std::uint32_t i = 0; i < piece_elements; ++i) {
                query[i] = space.query[d + i];
                mean[i] = space.mean[d + i];
            }
#pragma unroll
            for (std::uint32_t j = 0; j < rows_together; ++j) {
                float values[piece_elements];
                rows.decode(pieces[j], mean, values);
#pragma unroll
                for (std::uint32_t i = 0; i < piece_elements; ++i) sums[j].add(squared, query[i], values[i]);
            }
        }
#pragma unroll
        for (std::uint32_t j = 0; j < rows_together; ++j) {
            NearSum& sum = sums[j];
#pragma unroll
            for (int step = row_lanes / 2; step > 0; step /= 2) {
                sum.sum += __shfl_xor_sync(~0U, sum.sum, step);
                if (!squared) sum.magnitude += __shfl_xor_sync(~0U, sum.magnitude, step);
            }
            const std::uint32_t i = first + j * at_once;
            if (lane != 0 || i >= count) continue;
            const float error = relative * (squared ? sum.sum : sum.magnitude) + apart;
            float low = sum.sum - error;
            float high = sum.sum + error;
            if constexpr (requires { rows.distance(0U); }) {
                const float distance = rows.distance(positions[i]);
                widen_sum(squared, squared ? distance : distance * static_cast<float>(space.norm), low, high);
            }
            const bool finite = fabsf(low) < FLT_MAX && fabsf(high) < FLT_MAX;
            space.lowest[i] = finite ? low : -FLT_MAX;
            space.highest[i] = finite ? high : FLT_MAX;
        }
    }
    __syncthreads();
}

template <int Threads, class Rows>
__device__ std::uint32_t keep_near(const Rows& rows, const ResidentRows& resident, std::uint32_t* positions,
                                   std::uint32_t count, std::uint32_t wanted, const NearSpace& space)
{
    const TiedSums tied = tied_sums(resident, space.norm);
    bound_sums<Threads>(rows, resident.metric == Metric::l2, resident.dimensions, positions, count, tied.apart, space);
    if (threadIdx.x == 0) space.select->kept = 0;
    // At least `wanted` sums are certainly within the limit.
    const RankBound ranked = find_rank<Threads>(*space.select, wanted, wanted + spare_rows, [&](const auto& use) {
        for (std::uint32_t i = threadIdx.x; i < count; i += Threads) use(make_key(space.highest[i], i));
    });
    const float limit = fmaxf(key_bound(ranked.bound), tied.below);
    for (std::uint32_t base = 0; base < count; base += Threads) {
        const std::uint32_t i = base + threadIdx.x;
        const bool stays = i < count && !(space.lowest[i] > limit);
        const std::uint32_t position = i < count ? positions[i] : 0;
        __syncthreads();
        const std::uint32_t place = take_place(stays, &space.select->kept);
        if (stays) positions[place] = position;
        __syncthreads();
    }
    return space.select->kept;
}

}  // namespace detail

// Moves the positions of the `wanted` nearest rows, and of those that may be, to the front of positions [count], in any
// order. Returns their number. All threads call; ends with a barrier, and so does the caller's writing of `positions`,
// space.query and space.mean.
template <int Threads>
__device__ std::uint32_t keep_near_rows(const ResidentRows& resident, std::uint32_t* positions, std::uint32_t count,
                                        std::uint32_t wanted, const NearSpace& space)
{
    if (resident.full != nullptr) {
        const detail::FullRows rows{resident.full, resident.dimensions, resident.row_at};
        return detail::keep_near<Threads>(rows, resident, positions, count, wanted, space);
    }
    const detail::HalfRows rows{resident.half.rows, resident.stride, __fdiv_rn(1.0F, resident.half.scale)};
    return detail::keep_near<Threads>(rows, resident, positions, count, wanted, space);
}

}  // namespace pgwarp::cuda::rows
