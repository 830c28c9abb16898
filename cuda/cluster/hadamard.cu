#include "cluster/hadamard.h"

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "numeric/hadamard.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 256;

// The place of a value in shared memory. Short steps make strides of 16, which this permutation spreads over the banks.
__device__ inline int place(int at)
{
    return at ^ ((at >> 4) & 15);
}

// `levels` levels of the transform of `width` values from `first` on, beginning with those `step` apart; 2^levels
// values of a thread at a time are in registers.
template <int levels>
__device__ void transform_levels(float* values, int first, int width, int step)
{
    constexpr int radix = 1 << levels;
    for (int group = threadIdx.x; group < width / radix; group += threads) {
        const int inner = group & (step - 1);
        const int base = first + (group - inner) * radix + inner;
        float part[radix];
#pragma unroll
        for (int i = 0; i < radix; ++i) part[i] = values[place(base + i * step)];
#pragma unroll
        for (int apart = 1; apart < radix; apart *= 2) {
#pragma unroll
            for (int i = 0; i < radix; ++i) {
                if ((i & apart) != 0) continue;
                const float low = part[i];
                const float high = part[i + apart];
                part[i] = __fadd_rn(low, high);
                part[i + apart] = __fsub_rn(low, high);
            }
        }
#pragma unroll
        for (int i = 0; i < radix; ++i) values[place(base + i * step)] = part[i];
    }
    __syncthreads();
}

__device__ void transform(float* values, int first, int width)
{
    for (int step = 1; step < width;) {
        if (width / step >= 16) {
            transform_levels<4>(values, first, width, step);
            step *= 16;
        } else if (width / step >= 4) {
            transform_levels<2>(values, first, width, step);
            step *= 4;
        } else {
            transform_levels<1>(values, first, width, step);
            step *= 2;
        }
    }
}

// A block a row.
__global__ __launch_bounds__(threads) void hadamard_rotate_kernel(const float* rows, HadamardPlan plan,
                                                                  ResidualBase base, const std::uint8_t* signs,
                                                                  float* out)
{
    extern __shared__ float values[];
    const int dimensions = plan.dimensions;
    const float* row = rows + std::size_t{blockIdx.x} * dimensions;
    const float* centroid =
        base.labels != nullptr ? base.centroids + std::size_t{base.labels[blockIdx.x]} * dimensions : nullptr;
    for (int d = threadIdx.x; d < dimensions; d += threads)
        values[place(d)] = centroid != nullptr ? __fsub_rn(row[d], centroid[d]) : row[d];
    __syncthreads();
    for (int round = 0; round < HadamardPlan::rounds; ++round) {
        const std::uint8_t* changes = signs + static_cast<std::size_t>(round) * dimensions;
        const int first = plan.first(round);
        for (int d = threadIdx.x; d < dimensions; d += threads) {
            const float scale = d >= first && d < first + plan.width ? plan.scale : 1.0F;
            values[place(d)] = __fmul_rn(values[place(d)], changes[d] != 0 ? -scale : scale);
        }
        __syncthreads();
        transform(values, first, plan.width);
        for (int d = threadIdx.x; d < plan.pairs(); d += threads) {
            const float one = values[place(d)];
            const float other = values[place(d + plan.partner())];
            values[place(d)] = __fmul_rn(__fadd_rn(one, other), HadamardPlan::half_turn);
            values[place(d + plan.partner())] = __fmul_rn(__fsub_rn(one, other), HadamardPlan::half_turn);
        }
        __syncthreads();
    }
    float* to = out + std::size_t{blockIdx.x} * dimensions;
    for (int d = threadIdx.x; d < dimensions; d += threads) to[d] = values[place(d)];
}

}  // namespace

void hadamard_rotate_rows(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base,
                          const std::uint8_t* signs, float* out, cudaStream_t stream)
{
    if (count == 0) return;
    const HadamardPlan plan(dimensions);
    const std::size_t bytes = (dimensions + 15) / 16 * 16 * sizeof(float);
    allow_shared_memory(hadamard_rotate_kernel);
    // A launch takes well below a millisecond.
    const std::size_t step = std::min((std::size_t{1} << 25) / dimensions, std::size_t{1} << 16);
    for (std::size_t first = 0; first < count; first += step) {
        ResidualBase piece = base;
        if (piece.labels != nullptr) piece.labels += first;
        hadamard_rotate_kernel<<<static_cast<unsigned>(std::min(step, count - first)), threads, bytes, stream>>>(
            rows + first * dimensions, plan, piece, signs, out + first * dimensions);
        check_launch("rotate rows");
    }
}

}  // namespace pgwarp::cuda
