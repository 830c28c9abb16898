#include "graph/rank.h"

#include <algorithm>
#include <bit>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/canonical.cuh"
#include "graph/row_scores.cuh"
#include "ivfadc/candidate_values.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr int threads = 128;
constexpr int most_counted = 2 * threads;

// Sums of absolute differences, of any of the forms that rows may have.
__device__ double l1_value(const GraphView& view, const float* query, std::uint32_t row)
{
    const ivfadc::MirrorView& vectors = view.vectors;
    double sum = 0;
    const auto take = [&](std::uint32_t d, float stored) {
        sum = __dadd_rn(sum, fabs(__dsub_rn(static_cast<double>(query[d]), static_cast<double>(stored))));
    };
    if (vectors.remote.vectors != nullptr) {
        ivfadc::for_each_remote(vectors.remote.vectors + static_cast<std::size_t>(row) * vectors.remote.stride,
                                vectors.dimensions, take);
    } else if (vectors.vectors != nullptr) {
        const float* stored = vectors.vectors + static_cast<std::size_t>(row) * vectors.dimensions;
        for (std::uint32_t d = threadIdx.x % 8; d < vectors.dimensions; d += 8) take(d, stored[d]);
    } else {
        const __half* stored = vectors.half.rows + static_cast<std::size_t>(row) * vectors.stride;
        const float inverse = __fdiv_rn(1.0F, vectors.half.scale);
        for (std::uint32_t d = threadIdx.x % 8; d < vectors.dimensions; d += 8) {
            take(d, ivfadc::decoded_half(stored[d], inverse, vectors.half.mean[d]));
        }
    }
    const double total = ivfadc::canonical_total(sum);
    if (vectors.remote.vectors != nullptr || vectors.vectors != nullptr) return total;
    const double bound = __dsub_rn(__dmul_rn(total, 1 - bound_rounding), view.l1_error);
    return bound > 0 ? bound : 0.0;
}

// Every group of 8 lanes has a row of its own, all 32 lanes take part.
__device__ double value_of(const GraphView& view, const RankQueries& queries, std::uint32_t query, std::uint32_t row)
{
    if (view.has_bits()) {
        return static_cast<double>(
            BitScores::differing(view.bits.rows + static_cast<std::size_t>(row) * view.bits.words,
                                 queries.bits + static_cast<std::size_t>(query) * view.bits.words, view.bits.words));
    }
    const ivfadc::MirrorView& vectors = view.vectors;
    const float* original = queries.original + static_cast<std::size_t>(query) * vectors.dimensions;
    if (view.metric == Metric::l1) return l1_value(view, original, row);
    if (vectors.vectors != nullptr) return ivfadc::full_value(vectors, original, row);
    if (vectors.remote.vectors != nullptr) return ivfadc::remote_full_value(vectors, original, row);
    return ivfadc::half_value(vectors, original, queries.norms[query], row);
}

// Each row goes where as many come before it: for few that is less work than sorting them.
__device__ void emit_counted(int kept, const std::uint64_t* values, const std::uint32_t* numbers, std::uint32_t query,
                             std::uint32_t k, const ivfadc::Answers& out)
{
    for (int i = threadIdx.x; i < kept; i += threads) {
        const std::uint64_t value = values[i];
        const std::uint32_t number = numbers[i];
        std::uint32_t place = 0;
        for (int j = 0; j < kept; ++j) {
            place += values[j] < value || (values[j] == value && numbers[j] < number) ? 1 : 0;
        }
        if (place >= k) continue;
        out.values[static_cast<std::size_t>(query) * k + place] = ivfadc::value_of_key(value);
        out.rows[static_cast<std::size_t>(query) * k + place] = number;
    }
}

__global__ __launch_bounds__(threads) void rank_kernel(GraphView view, RankQueries queries, const std::uint32_t* rows,
                                                       const std::uint32_t* found, std::uint32_t wanted,
                                                       std::uint32_t k, std::uint32_t capacity, ivfadc::Answers out)
{
    extern __shared__ std::uint64_t values[];
    auto* numbers = reinterpret_cast<std::uint32_t*>(values + capacity);
    wait_for_kernel_before();
    const std::uint32_t query = blockIdx.x;
    const auto kept = static_cast<int>(found[query]);
    for (int i = threadIdx.x; i < kept; i += threads) numbers[i] = rows[static_cast<std::size_t>(query) * wanted + i];
    __syncthreads();
    // Each group of 8 lanes takes a row; whole warps stay together.
    for (int base = 0; base < kept; base += threads / 8) {
        const int at = base + static_cast<int>(threadIdx.x) / 8;
        if (base + static_cast<int>(threadIdx.x / 32) * 4 >= kept) break;
        const double value = value_of(view, queries, query, numbers[min(at, kept - 1)]);
        if (at < kept && threadIdx.x % 8 == 0) values[at] = ivfadc::order_key(__dadd_rn(value, 0.0));
    }
    __syncthreads();
    if (kept <= most_counted) {
        emit_counted(kept, values, numbers, query, k, out);
    } else {
        ivfadc::sort_candidates<threads>(kept, values, numbers);
        ivfadc::emit_candidates<threads>(kept, values, numbers, query, k, out);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    // The host may wait for this number: all else is there before it.
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(&out.found[query]) = static_cast<std::uint32_t>(kept);
}

__global__ __launch_bounds__(threads) void all_values_kernel(GraphView view, RankQueries queries, std::uint32_t first,
                                                             std::uint32_t count, double* values)
{
    const std::uint32_t at = blockIdx.x * (threads / 8) + threadIdx.x / 8;
    const double value = value_of(view, queries, 0, min(first + at, first + count - 1));
    if (at < count && threadIdx.x % 8 == 0) values[at] = value;
}

}  // namespace

void rank_found(const GraphView& view, const RankQueries& queries, const std::uint32_t* rows,
                const std::uint32_t* found, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                const ivfadc::Answers& out, bool chained, cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t capacity = std::max(2U, std::bit_ceil(wanted));
    allow_shared_memory(rank_kernel);
    launch_chained(chained, rank_kernel, count, threads, capacity * std::size_t{12}, stream, "ranking rows", view,
                   queries, rows, found, wanted, k, capacity, out);
    check_launch("ranking rows");
}

void all_values(const GraphView& view, const RankQueries& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t blocks = (count + threads / 8 - 1) / (threads / 8);
    all_values_kernel<<<blocks, threads, 0, stream>>>(view, queries, first, count, values);
    check_launch("values of rows");
}

}  // namespace pgwarp::cuda::graph
