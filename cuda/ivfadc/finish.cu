#include "ivfadc/finish.h"

#include <algorithm>

#include "device/error.h"
#include "ivfadc/block_select.cuh"
#include "ivfadc/candidate_values.cuh"
#include "rows/candidates.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int wide_threads = 1024;
constexpr int value_threads = 256;

__device__ std::uint32_t position_of_slot(const MirrorView& mirror, const ProbeView& probes, std::uint32_t query,
                                          std::uint32_t slot)
{
    const std::size_t first = static_cast<std::size_t>(query) * probes.probes;
    std::uint32_t low = 0;
    std::uint32_t high = probes.probes;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (probes.slot[first + middle] <= slot ? low : high) = middle;
    }
    return mirror.list_begin[probes.list[first + low]] + slot - probes.slot[first + low];
}

// ---- limits ----

constexpr int limit_warps = 8;

// One warp for each query. The wanted-th smallest of the minima of 32 * Groups disjoint parts is a bound for the
// wanted-th smallest score.
template <int Groups>
__global__ __launch_bounds__(limit_warps * 32) void set_limits_kernel(MirrorView mirror, ProbeView probes,
                                                                      DenseScores scores, std::uint32_t count,
                                                                      std::uint32_t first_ranks, std::uint32_t wanted,
                                                                      float* limits, LimitedScores out)
{
    const std::uint32_t query = blockIdx.x * limit_warps + threadIdx.x / 32;
    const std::uint32_t lane = threadIdx.x % 32;
    if (query >= count) return;
    const float* row = scores.scores + query * scores.stride;
    const std::size_t first_pair = static_cast<std::size_t>(query) * probes.probes;
    const std::uint32_t slots =
        first_ranks < probes.probes ? probes.slot[first_pair + first_ranks] : probes.slots[query];
    std::uint32_t minima[Groups];
    for (auto& minimum : minima) minimum = no_key;
    for (std::uint32_t base = 0; base < slots; base += 32 * Groups) {
#pragma unroll
        for (int g = 0; g < Groups; ++g) {
            const std::uint32_t i = base + g * 32 + lane;
            if (i < slots) minima[g] = min(minima[g], score_key(row[i]));
        }
    }
    const std::uint32_t limit = warp_limit(
        [&](std::uint32_t key) {
            std::uint32_t own = 0;
#pragma unroll
            for (int g = 0; g < Groups; ++g) own += minima[g] <= key ? 1 : 0;
            return own;
        },
        wanted);
    const float largest = 3.402823466e38F;
    if (lane == 0) limits[query] = limit == no_key ? largest : float_of_order(limit);
    std::uint32_t kept = 0;
    constexpr int batch = 8;  // loads under way at a time
    for (std::uint32_t base = 0; base < slots; base += 32 * batch) {
        std::uint32_t keys[batch];
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            const std::uint32_t i = base + b * 32 + lane;
            keys[b] = i < slots ? score_key(row[i]) : no_key;
        }
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            const bool here = keys[b] <= limit && keys[b] != no_key;
            const std::uint32_t ballot = __ballot_sync(0xffffffffU, here);
            const std::uint32_t at = kept + __popc(ballot & ((1U << lane) - 1));
            if (here && at < out.capacity) {
                out.candidates[static_cast<std::size_t>(query) * out.capacity + at] =
                    static_cast<std::uint64_t>(keys[b]) << 32 |
                    position_of_slot(mirror, probes, query, base + b * 32 + lane);
            }
            kept += __popc(ballot);
        }
    }
    if (lane == 0) out.counts[query] = kept;
}

// ---- the last step ----

struct DenseSource {
    ProbeView probes;
    DenseScores scores;
    __device__ std::uint32_t count(std::uint32_t query) const { return probes.slots[query]; }
    __device__ bool lost(std::uint32_t) const { return false; }
    __device__ std::uint32_t key(std::uint32_t query, std::uint32_t i) const
    {
        return score_key(scores.scores[query * scores.stride + i]);
    }
    __device__ std::uint32_t position(const MirrorView& mirror, std::uint32_t query, std::uint32_t i) const
    {
        return position_of_slot(mirror, probes, query, i);
    }
};

struct LimitedSource {
    LimitedScores scores;
    __device__ std::uint32_t count(std::uint32_t query) const { return scores.counts[query]; }
    __device__ bool lost(std::uint32_t query) const { return scores.counts[query] > scores.capacity; }
    __device__ std::uint32_t key(std::uint32_t query, std::uint32_t i) const
    {
        return static_cast<std::uint32_t>(scores.candidates[static_cast<std::size_t>(query) * scores.capacity + i] >>
                                          32);
    }
    __device__ std::uint32_t position(const MirrorView&, std::uint32_t query, std::uint32_t i) const
    {
        return static_cast<std::uint32_t>(scores.candidates[static_cast<std::size_t>(query) * scores.capacity + i]);
    }
};

template <int Threads, int Held, class Source>
__global__ __launch_bounds__(Threads) void finish_queries(MirrorView mirror, QueryView queries, Source source,
                                                          std::uint32_t wanted, std::uint32_t k, Answers out)
{
    __shared__ SelectShared shared;
    __shared__ std::uint32_t rows[select_most];
    const std::uint32_t query = blockIdx.x;
    if (source.lost(query)) {
        if (threadIdx.x == 0) out.found[query] = overflowed;
        return;
    }
    const int kept = select_smallest<Threads, Held>([&](std::uint32_t i) { return source.key(query, i); },
                                                    source.count(query), wanted, shared);
    for (int i = threadIdx.x; i < kept; i += Threads) {
        rows[i] = source.position(mirror, query, static_cast<std::uint32_t>(shared.kept[i]));
    }
    __syncthreads();
    value_candidates<Threads>(mirror, queries, query, kept, shared.kept, rows);
    sort_candidates<Threads>(kept, shared.kept, rows);
    emit_candidates<Threads>(kept, shared.kept, rows, query, k, out);
    if (threadIdx.x == 0) out.found[query] = static_cast<std::uint32_t>(kept);
}

// Few queries get blocks of many threads, many queries blocks of few.
template <class Source>
void launch_finish(const MirrorView& mirror, const QueryView& queries, const Source& source, std::uint32_t count,
                   std::uint32_t wanted, std::uint32_t k, const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    if (count <= 264) {
        finish_queries<1024, 16><<<count, 1024, 0, stream>>>(mirror, queries, source, wanted, k, out);
    } else {
        finish_queries<128, 16><<<count, 128, 0, stream>>>(mirror, queries, source, wanted, k, out);
    }
    check_launch("ranking candidates");
}

__global__ __launch_bounds__(wide_threads) void select_wide(MirrorView mirror, DenseSource source, std::uint32_t wanted,
                                                            std::uint32_t* positions, std::uint32_t* found)
{
    __shared__ SelectShared shared;
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t count = source.count(query);
    const std::uint32_t limit = find_limit<wide_threads>(
        [&](const auto& f) {
            for (std::uint32_t i = threadIdx.x; i < count; i += wide_threads) f(source.key(query, i));
        },
        wanted, 4, shared);
    if (threadIdx.x == 0) shared.count = 0;
    __syncthreads();
    const auto keep = [&](std::uint32_t i) {
        const auto at = static_cast<std::uint32_t>(atomicAdd(&shared.count, 1));
        if (at < wanted) positions[static_cast<std::size_t>(query) * wanted + at] = source.position(mirror, query, i);
    };
    for (std::uint32_t i = threadIdx.x; i < count; i += wide_threads) {
        if (source.key(query, i) < limit) keep(i);
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count && limit != no_key; i += wide_threads) {
        if (source.key(query, i) == limit) keep(i);
    }
    __syncthreads();
    if (threadIdx.x == 0) found[query] = min(static_cast<std::uint32_t>(shared.count), wanted);
}

__global__ __launch_bounds__(value_threads) void value_wide(MirrorView mirror, QueryView queries, std::uint32_t wanted,
                                                            const std::uint32_t* positions, Answers out)
{
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t found = out.found[query];
    const std::uint32_t at = blockIdx.x * (value_threads / 8) + threadIdx.x / 8;
    if (blockIdx.x * (value_threads / 8) + threadIdx.x / 32 * 4 >= found) return;
    const std::size_t first = static_cast<std::size_t>(query) * wanted;
    const std::uint32_t position = positions[first + min(at, found - 1)];
    const std::uint32_t list = mirror.values_of_residuals() ? list_at(mirror, position) : 0;
    const double value = row_value(mirror, queries, query, list, position);
    if (at >= found || threadIdx.x % 8 != 0) return;
    out.values[first + at] = value;
    out.rows[first + at] = mirror.row_at[position];
}

__global__ __launch_bounds__(value_threads) void all_values_kernel(MirrorView mirror, QueryView queries,
                                                                   std::uint32_t first, std::uint32_t count,
                                                                   double* values)
{
    const std::uint32_t at = blockIdx.x * (value_threads / 8) + threadIdx.x / 8;
    const std::uint32_t position = min(first + at, first + count - 1);
    const bool padding = mirror.row_at[position] == no_row;
    // Groups of lanes on padding compute the value of the list's first row, so that all lanes take part in the
    // shuffles.
    const std::uint32_t list = list_at(mirror, position);
    const std::uint32_t used = padding ? mirror.list_begin[list] : position;
    const double value = row_value(mirror, queries, 0, list, used);
    if (at < count && threadIdx.x % 8 == 0) values[at] = padding ? NAN : value;
}

}  // namespace

void set_limits(const MirrorView& mirror, const ProbeView& probes, const DenseScores& scores, std::uint32_t count,
                std::uint32_t first_ranks, std::uint32_t wanted, float* limits, const LimitedScores& out,
                cudaStream_t stream)
{
    const std::uint32_t blocks = (count + limit_warps - 1) / limit_warps;
    if (wanted <= 64) {
        set_limits_kernel<8>
            <<<blocks, limit_warps * 32, 0, stream>>>(mirror, probes, scores, count, first_ranks, wanted, limits, out);
    } else {
        set_limits_kernel<32>
            <<<blocks, limit_warps * 32, 0, stream>>>(mirror, probes, scores, count, first_ranks, wanted, limits, out);
    }
    check_launch("limits of candidates");
}

void finish_dense(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                  const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                  const Answers& out, cudaStream_t stream)
{
    launch_finish(mirror, queries, DenseSource{probes, scores}, count, wanted, k, out, stream);
}

void finish_limited(const MirrorView& mirror, const QueryView& queries, const LimitedScores& candidates,
                    std::uint32_t count, std::uint32_t wanted, std::uint32_t k, const Answers& out, cudaStream_t stream)
{
    launch_finish(mirror, queries, LimitedSource{candidates}, count, wanted, k, out, stream);
}

void finish_wide(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes, const DenseScores& scores,
                 std::uint32_t count, std::uint32_t wanted, std::uint32_t* positions, const Answers& out,
                 cudaStream_t stream)
{
    select_wide<<<count, wide_threads, 0, stream>>>(mirror, DenseSource{probes, scores}, wanted, positions, out.found);
    check_launch("wide selection");
    const std::uint32_t blocks = (wanted + value_threads / 8 - 1) / (value_threads / 8);
    value_wide<<<dim3(blocks, count), value_threads, 0, stream>>>(mirror, queries, wanted, positions, out);
    check_launch("values of candidates");
}

void all_values(const MirrorView& mirror, const QueryView& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream)
{
    const std::uint32_t blocks = (count + value_threads / 8 - 1) / (value_threads / 8);
    all_values_kernel<<<blocks, value_threads, 0, stream>>>(mirror, queries, first, count, values);
    check_launch("values of rows");
}

}  // namespace pgwarp::cuda::ivfadc
