#include "cluster/half_rows.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cluster/device_math.cuh"
#include "device/error.h"
#include "device/wait.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 256;
constexpr int columns = 32;
constexpr int strands = threads / columns;
constexpr std::size_t share_rows = 2048;
constexpr int stored_exponent = 14;  // as in half_codec.cpp
constexpr int largest_exponent = 126;

struct Column {
    double sum;
    float low;
    float high;
};

__device__ inline void merge(Column& into, const Column& other)
{
    into.sum += other.sum;
    into.low = fminf(into.low, other.low);
    into.high = fmaxf(into.high, other.high);
}

// One share of the rows, 32 columns: partial[share][dimensions].
__global__ __launch_bounds__(threads) void column_shares_kernel(const float* rows, std::size_t count,
                                                                std::size_t dimensions, std::size_t first_share,
                                                                Column* partial)
{
    __shared__ Column shared[strands][columns];
    const std::size_t column = std::size_t{blockIdx.y} * columns + threadIdx.x;
    const std::size_t share = first_share + blockIdx.x;
    const std::size_t end = min(count, (share + 1) * share_rows);
    Column own{0, 3.402823466e38F, -3.402823466e38F};
    if (column < dimensions) {
#pragma unroll 8
        for (std::size_t i = share * share_rows + threadIdx.y; i < end; i += strands) {
            const float value = rows[i * dimensions + column];
            merge(own, {value, value, value});
        }
    }
    shared[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.y != 0 || column >= dimensions) return;
    for (int s = 1; s < strands; ++s) merge(own, shared[s][threadIdx.x]);
    partial[share * dimensions + column] = own;
}

__global__ void merge_shares_kernel(const Column* partial, std::size_t shares, std::size_t dimensions, Column* out)
{
    const std::size_t column = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (column >= dimensions) return;
    Column own = partial[column];
    for (std::size_t s = 1; s < shares; ++s) merge(own, partial[s * dimensions + column]);
    out[column] = own;
}

// The error bound of half_codec.cpp from its three sums of squares, rounded up.
__device__ inline float error_bound(double from_decoded, double from_stored, double from_mean)
{
    const double bound = sqrt(fmax(from_decoded, from_stored)) * (1 + 0x1p-32) + sqrt(from_mean) * 0x1p-50;
    if (bound == 0) return 0;
    if (!(bound < 3.402823466e38)) return __uint_as_float(0x7F800000U);
    return nextafterf(static_cast<float>(bound), __uint_as_float(0x7F800000U));
}

// A warp a row. Multiplications and differences round one by one, as on the CPU.
__global__ __launch_bounds__(threads) void encode_half_kernel(const float* rows, std::size_t count,
                                                              std::size_t dimensions, const float* mean, float scale,
                                                              std::uint16_t* out, std::uint32_t* worst)
{
    const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    if (i >= count) return;
    const int lane = threadIdx.x % 32;
    const float before = fminf(scale, 1.0F);
    const float after = fmaxf(scale, 1.0F);
    const float inverse = 1.0F / scale;
    double from_decoded = 0;
    double from_stored = 0;
    double from_mean = 0;
    for (std::size_t d = lane; d < dimensions; d += 32) {
        const float value = rows[i * dimensions + d];
        const float centre = mean[d];
        const float scaled = __fmul_rn(__fsub_rn(__fmul_rn(value, before), __fmul_rn(centre, before)), after);
        const __half half = __float2half_rn(fmaxf(fminf(scaled, 65504.0F), -65504.0F));
        out[i * dimensions + d] = __half_as_ushort(half);
        const float stored = __half2float(half);
        const float decoded =
            fmaxf(fminf(__fadd_rn(__fmul_rn(stored, inverse), centre), 3.402823466e38F), -3.402823466e38F);
        const double centred = static_cast<double>(value) - centre;
        const double decoded_error = static_cast<double>(value) - decoded;
        const double stored_error = centred - stored * static_cast<double>(inverse);
        from_mean += centred * centred;
        from_decoded += decoded_error * decoded_error;
        from_stored += stored_error * stored_error;
    }
    from_mean = warp_sum(from_mean);
    from_decoded = warp_sum(from_decoded);
    from_stored = warp_sum(from_stored);
    if (lane != 0) return;
    const std::uint32_t bits = __float_as_uint(error_bound(from_decoded, from_stored, from_mean));
    if (bits > *reinterpret_cast<volatile std::uint32_t*>(worst)) atomicMax(worst, bits);
}

// As scale_for() in half_codec.cpp: the largest power of two that keeps `deviation` at or below 2^14.
float scale_for(double deviation)
{
    if (!(deviation > 0)) return 1.0F;
    int exponent = 0;
    std::frexp(deviation, &exponent);
    return std::ldexp(1.0F, std::clamp(stored_exponent - exponent, -largest_exponent, largest_exponent));
}

}  // namespace

HalfCodec train_half(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                     cudaStream_t stream)
{
    HalfCodec codec;
    codec.mean.assign(dimensions, 0.0F);
    if (count == 0) return codec;
    const std::size_t shares = (count + share_rows - 1) / share_rows;
    DeviceArray<Column> partial(context.pool(), shares * dimensions, "build workspace", stream);
    DeviceArray<Column> merged(context.pool(), dimensions, "build workspace", stream);
    // About 0.1 ms a launch.
    const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 26) / (dimensions * share_rows));
    for (std::size_t first = 0; first < shares; first += step) {
        const dim3 grid(static_cast<unsigned>(std::min(step, shares - first)),
                        static_cast<unsigned>((dimensions + columns - 1) / columns));
        column_shares_kernel<<<grid, dim3(columns, strands), 0, stream>>>(rows, count, dimensions, first,
                                                                          partial.data());
        check_launch("column statistics");
    }
    merge_shares_kernel<<<static_cast<unsigned>((dimensions + 63) / 64), 64, 0, stream>>>(partial.data(), shares,
                                                                                          dimensions, merged.data());
    check_launch("merge column statistics");
    std::vector<Column> result(dimensions);
    read_back(result.data(), merged.data(), merged.bytes(), stream, "waiting for column statistics");
    double deviation = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        codec.mean[d] = static_cast<float>(result[d].sum / static_cast<double>(count));
        const double mean = codec.mean[d];
        deviation = std::max({deviation, result[d].high - mean, mean - result[d].low});
    }
    codec.scale = scale_for(deviation);
    return codec;
}

void encode_half(const float* rows, std::size_t count, const HalfCodec& codec, const float* mean, std::uint16_t* out,
                 std::uint32_t* worst, cudaStream_t stream)
{
    const std::size_t dimensions = codec.mean.size();
    // 0.07 to 0.12 ms a launch, by memory traffic or by warps.
    const std::size_t step = std::clamp<std::size_t>((std::size_t{1} << 25) / dimensions, 1, std::size_t{1} << 18);
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        encode_half_kernel<<<static_cast<unsigned>((here * 32 + threads - 1) / threads), threads, 0, stream>>>(
            rows + first * dimensions, here, dimensions, mean, codec.scale, out + first * dimensions, worst);
        check_launch("encode half rows");
    }
}

}  // namespace pgwarp::cuda
