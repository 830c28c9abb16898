// Assignment in fp32: rows of few dimensions, where a matrix tile would be mostly padding, and the decision between the
// two centroids that the tiles propose.
#include <algorithm>

#include "cluster/assign_kernels.h"
#include "cluster/device_math.cuh"
#include "device/error.h"
#include "select/order_bits.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 256;
constexpr int rows_per_thread = 2;
constexpr int slice = 256;  // centroids of a block; an atomic minimum joins the slices

// Score and index as one integer, ordered by score, then by index.
__device__ inline unsigned long long ranked(float score, unsigned index)
{
    return (static_cast<unsigned long long>(order_of(score)) << 32) | index;
}

template <int width>
__global__ __launch_bounds__(threads) void assign_narrow_kernel(NarrowTask task, std::size_t first_row)
{
    __shared__ __align__(16) float centroids[slice][width];
    const auto d = static_cast<int>(task.dimensions);
    const float scale = *task.scale;
    const std::size_t first = std::size_t{blockIdx.y} * slice;
    const int here = static_cast<int>(min(std::size_t{slice}, task.clusters - first));
    for (int at = threadIdx.x; at < here * width; at += threads) {
        const int c = at / width;
        const int e = at % width;
        centroids[c][e] = e < d ? framed(task.centroids[(first + c) * d + e], scale, task.origin[e]) : 0.0F;
    }
    std::size_t row[rows_per_thread];
    float values[rows_per_thread][width];
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
        row[r] = first_row + (std::size_t{blockIdx.x} * rows_per_thread + r) * threads + threadIdx.x;
        const std::size_t from = min(row[r], task.count - 1) * d;
#pragma unroll
        for (int e = 0; e < width; ++e)
            values[r][e] = e < d ? framed(task.rows[from + e], scale, task.origin[e]) : 0.0F;
    }
    __syncthreads();
    float best[rows_per_thread];
    int index[rows_per_thread] = {};
    for (float& score : best) score = __uint_as_float(0x7F800000U);
    for (int c = 0; c < here; ++c) {
        float score[rows_per_thread] = {};
#pragma unroll
        for (int e = 0; e < width; ++e) {
            const float value = centroids[c][e];
#pragma unroll
            for (int r = 0; r < rows_per_thread; ++r) {
                const float difference = values[r][e] - value;
                score[r] = task.dot ? fmaf(-values[r][e], value, score[r]) : fmaf(difference, difference, score[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < rows_per_thread; ++r) {
            index[r] = score[r] < best[r] ? c : index[r];
            best[r] = fminf(best[r], score[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r)
        if (row[r] < task.count)
            atomicMin(task.best + row[r], ranked(best[r], static_cast<unsigned>(first) + index[r]));
}

__global__ __launch_bounds__(threads) void finish_narrow_kernel(const unsigned long long* best, std::size_t count,
                                                                std::uint32_t* labels, std::uint32_t* changed)
{
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    bool differs = false;
    if (i < count) {
        const auto label = static_cast<std::uint32_t>(best[i]);
        differs = changed != nullptr && labels[i] != label;
        labels[i] = label;
    }
    if (changed == nullptr) return;
    const int total = __syncthreads_count(differs);
    if (threadIdx.x == 0 && total != 0) atomicAdd(changed, static_cast<unsigned>(total));
}

// Eight lanes a row.
__global__ __launch_bounds__(threads) void decide_pairs_kernel(const float* rows, std::size_t count,
                                                               std::size_t dimensions, const float* centroids, bool dot,
                                                               const float* frame_scale, const uint2* pairs,
                                                               std::uint32_t* labels)
{
    const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 8;
    const int lane = threadIdx.x % 8;
    const float scale = *frame_scale;
    const uint2 pair = i < count ? pairs[i] : make_uint2(0, 0);
    float scores[2] = {0, 0};
    if (pair.x != pair.y) {
        const float* row = rows + i * dimensions;
        const float* one = centroids + pair.x * dimensions;
        const float* two = centroids + pair.y * dimensions;
        for (std::size_t e = lane; e < dimensions; e += 8) {
            const float value = framed(row[e], scale, 0);
            const float first = framed(one[e], scale, 0);
            const float second = framed(two[e], scale, 0);
            scores[0] = dot ? fmaf(-value, first, scores[0]) : fmaf(value - first, value - first, scores[0]);
            scores[1] = dot ? fmaf(-value, second, scores[1]) : fmaf(value - second, value - second, scores[1]);
        }
    }
    for (int offset = 1; offset < 8; offset *= 2) {
        scores[0] += __shfl_xor_sync(~0U, scores[0], offset);
        scores[1] += __shfl_xor_sync(~0U, scores[1], offset);
    }
    if (lane != 0 || i >= count) return;
    const bool second = scores[1] < scores[0] || (scores[1] == scores[0] && pair.y < pair.x);
    labels[i] = second ? pair.y : pair.x;
}

}  // namespace

void assign_narrow(const NarrowTask& task, cudaStream_t stream)
{
    if (task.count == 0) return;
    check(cudaMemsetAsync(task.best, 0xFF, task.count * sizeof(unsigned long long), stream), "clearing minima");
    const auto slices = static_cast<unsigned>((task.clusters + slice - 1) / slice);
    // Comparisons of rows with centroids that take 0.1 to 0.2 ms.
    constexpr std::size_t block_rows = threads * rows_per_thread;
    const std::size_t most = std::size_t{1} << (task.dimensions <= 4 ? 28 : 27);
    const std::size_t step = std::max<std::size_t>(1, most / (task.clusters * block_rows)) * block_rows;
    for (std::size_t first = 0; first < task.count; first += step) {
        const std::size_t here = std::min(step, task.count - first);
        const dim3 grid(static_cast<unsigned>((here + block_rows - 1) / block_rows), slices);
        if (task.dimensions <= 4) {
            assign_narrow_kernel<4><<<grid, threads, 0, stream>>>(task, first);
        } else {
            assign_narrow_kernel<narrow_dimensions><<<grid, threads, 0, stream>>>(task, first);
        }
        check_launch("assign narrow rows");
    }
    finish_narrow_kernel<<<static_cast<unsigned>((task.count + threads - 1) / threads), threads, 0, stream>>>(
        task.best, task.count, task.labels, task.changed);
    check_launch("finish narrow rows");
}

void decide_pairs(const float* rows, std::size_t count, std::size_t dimensions, const float* centroids, bool dot,
                  const float* scale, const uint2* pairs, std::uint32_t* labels, cudaStream_t stream)
{
    decide_pairs_kernel<<<static_cast<unsigned>((count * 8 + threads - 1) / threads), threads, 0, stream>>>(
        rows, count, dimensions, centroids, dot, scale, pairs, labels);
    check_launch("decide pairs");
}

}  // namespace pgwarp::cuda
