#include "pqtree/rank.h"

#include <cmath>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "pqtree/row_value.cuh"
#include "rows/candidates.cuh"
#include "select/key.cuh"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr int batch_threads = 256;
constexpr int single_threads = 512;
constexpr std::uint32_t most_counted = 512;  // candidates: counting takes fewer barriers than sorting
constexpr int value_threads = 256;

// The canonical norm of a query, in all lanes, where values depend on it. All lanes of a warp call.
__device__ double norm_of(const MirrorView& mirror, const float* query)
{
    if (mirror.metric != Metric::inner_product) return 0;
    return __dsqrt_rn(rows::canonical_dot(query, query, mirror.dimensions));
}

// Writes the first k candidates in the order of (value, row), each at the number of candidates before it.
template <int Threads>
__device__ void emit_by_counting(std::uint32_t count, const std::uint64_t* values, const std::uint32_t* numbers,
                                 std::uint32_t query, std::uint32_t k, const Answers& out)
{
    for (std::uint32_t i = threadIdx.x; i < count; i += Threads) {
        const std::uint64_t value = values[i];
        const std::uint32_t number = numbers[i];
        std::uint32_t place = 0;
#pragma unroll 4
        for (std::uint32_t j = 0; j < count; ++j)
            place += values[j] < value || (values[j] == value && numbers[j] < number) ? 1 : 0;
        if (place >= k) continue;
        out.values[std::size_t{query} * k + place] = double_of_order(value);
        out.rows[std::size_t{query} * k + place] = number;
    }
}

// A block ranks the proposals of a query. Groups of 8 lanes compute a value.
template <int Threads>
__global__ __launch_bounds__(Threads) void rank_kernel(MirrorView mirror, const float* queries, Proposals proposals,
                                                       std::uint32_t stride, std::uint32_t k, bool polled, Answers out)
{
    extern __shared__ std::uint64_t values[];  // [size], then the rows
    wait_for_kernel_before();
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t count = proposals.counts[query];
    const std::uint32_t size = power_of_two_above(max(stride, 2U));
    auto* numbers = reinterpret_cast<std::uint32_t*>(values + size);
    const float* given = queries + std::size_t{query} * mirror.dimensions;
    const SelectKey* own = proposals.keys + std::size_t{query} * stride;
    const double norm = norm_of(mirror, given);
    for (std::uint32_t base = 0; base < count; base += Threads / 8) {
        // Uniform in a warp, as all lanes take part in the shuffles.
        if (base + threadIdx.x / 32 * 4 >= count) break;
        const std::uint32_t i = base + threadIdx.x / 8;
        const std::uint32_t position = key_id(own[min(i, count - 1)]);
        const double value = row_value(mirror, given, norm, position);
        if (i < count && threadIdx.x % 8 == 0) {
            values[i] = order_of(value);
            numbers[i] = mirror.row_at[position];
        }
    }
    __syncthreads();
    if (count <= most_counted) {
        emit_by_counting<Threads>(count, values, numbers, query, k, out);
    } else {
        rows::sort_candidates<Threads>(static_cast<int>(count), values, numbers);
        rows::emit_candidates<Threads>(static_cast<int>(count), values, numbers, query, k, out);
    }
    if (polled) {
        __threadfence_system();
        __syncthreads();
    }
    if (threadIdx.x == 0) out.found[query] = count;
}

__global__ __launch_bounds__(batch_threads) void answer_kernel(MirrorView mirror, Proposals proposals,
                                                               std::uint32_t wanted, Answers out)
{
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t count = proposals.counts[query];
    for (std::uint32_t i = threadIdx.x; i < count; i += batch_threads) {
        const std::size_t at = std::size_t{query} * wanted + i;
        out.values[at] = key_score(proposals.keys[at]);
        out.rows[at] = mirror.row_at[key_id(proposals.keys[at])];
    }
    if (threadIdx.x == 0) out.found[query] = count;
}

__global__ __launch_bounds__(value_threads) void all_values_kernel(MirrorView mirror, const float* query,
                                                                   std::uint32_t first, std::uint32_t count,
                                                                   double* values)
{
    const std::uint32_t at = blockIdx.x * (value_threads / 8) + threadIdx.x / 8;
    const std::uint32_t position = first + min(at, count - 1);
    const bool padding = mirror.row_at[position] == rows::no_row;
    // Lanes on padding compute another position's value, so that all take part in the shuffles.
    const double value = row_value(mirror, query, norm_of(mirror, query), padding ? 0 : position);
    if (at < count && threadIdx.x % 8 == 0) values[at] = padding ? NAN : value;
}

}  // namespace

void rank_proposals(const MirrorView& mirror, const float* queries, std::uint32_t count, const Proposals& proposals,
                    std::uint32_t stride, std::uint32_t k, bool polled, const Answers& out, cudaStream_t stream)
{
    constexpr std::uint32_t few = 132;  // a multiprocessor each, or more
    if (count == 0) return;
    const std::size_t bytes =
        power_of_two_above(std::max(stride, 2U)) * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
    if (count <= few) {
        launch_chained(count <= rows::chained_queries, rank_kernel<single_threads>, count, single_threads, bytes,
                       stream, "ranking proposals", mirror, queries, proposals, stride, k, polled, out);
    } else {
        launch_chained(false, rank_kernel<batch_threads>, count, batch_threads, bytes, stream, "ranking proposals",
                       mirror, queries, proposals, stride, k, polled, out);
    }
}

void answer_proposals(const MirrorView& mirror, std::uint32_t count, const Proposals& proposals, std::uint32_t wanted,
                      const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    answer_kernel<<<count, batch_threads, 0, stream>>>(mirror, proposals, wanted, out);
    check_launch("writing proposals");
}

void all_values(const MirrorView& mirror, const float* query, std::uint32_t first, std::uint32_t count, double* values,
                cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t blocks = (count + value_threads / 8 - 1) / (value_threads / 8);
    all_values_kernel<<<blocks, value_threads, 0, stream>>>(mirror, query, first, count, values);
    check_launch("values of rows");
}

}  // namespace pgwarp::cuda::pqtree
