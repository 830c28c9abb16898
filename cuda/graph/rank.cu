#include "graph/rank.h"

#include <algorithm>
#include <bit>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "graph/rank_rows.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr int threads = 128;

__global__ __launch_bounds__(threads) void rank_kernel(GraphView view, RankQueries queries, const std::uint32_t* rows,
                                                       const std::uint32_t* found, std::uint32_t wanted,
                                                       std::uint32_t k, std::uint32_t capacity, Answers out)
{
    extern __shared__ std::uint64_t values[];
    auto* numbers = reinterpret_cast<std::uint32_t*>(values + capacity);
    wait_for_kernel_before();
    const std::uint32_t query = blockIdx.x;
    const auto kept = static_cast<int>(found[query]);
    for (int i = threadIdx.x; i < kept; i += threads) numbers[i] = rows[static_cast<std::size_t>(query) * wanted + i];
    __syncthreads();
    value_rows(view, queries, query, kept, numbers, values);
    if (kept <= static_cast<int>(most_ranked_in_place)) {
        emit_counted(kept, values, numbers, query, k, out);
    } else {
        rows::sort_candidates<threads>(kept, values, numbers);
        rows::emit_candidates<threads>(kept, values, numbers, query, k, out);
    }
    report_found(kept, query, out);
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
                const Answers& out, bool chained, cudaStream_t stream)
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
