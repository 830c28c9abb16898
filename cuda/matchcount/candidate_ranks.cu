#include "matchcount/candidate_ranks.h"

#include <algorithm>
#include <bit>

#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/canonical.cuh"
#include "passes/entry_values.h"
#include "rows/candidates.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 256;
constexpr std::uint32_t block_pairs = threads / canonical_lanes;
// Blocks that sort this many candidates still share a multiprocessor.
constexpr std::uint32_t most_ranked = 8192;

std::size_t bytes_of_ranking(std::uint32_t wanted)
{
    return std::bit_ceil(std::max(2U, wanted)) * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
}

__global__ __launch_bounds__(threads) void value_kernel(RankedVectors vectors, Candidates candidates,
                                                        std::uint64_t first_pair, std::uint64_t end, double* values)
{
    const std::uint64_t pair = first_pair + std::uint64_t{blockIdx.x} * block_pairs + threadIdx.x / canonical_lanes;
    if (pair >= end) return;
    const std::uint64_t query = pair / candidates.wanted;
    if (pair % candidates.wanted >= candidates.found[query]) return;
    const float* const given = candidates.queries + query * vectors.dimensions;
    const float* const stored = vectors.vectors + std::size_t{candidates.rows[pair]} * vectors.dimensions;
    const double distance = canonical_distance(vectors.metric, given, stored, vectors.dimensions);
    if (threadIdx.x % canonical_lanes == 0) values[pair] = emitted_value(vectors.metric, distance);
}

__global__ __launch_bounds__(threads) void rank_kernel(Candidates candidates, const double* values, std::uint32_t k,
                                                       std::uint32_t capacity, Answers out)
{
    extern __shared__ std::uint64_t keys[];
    auto* const numbers = reinterpret_cast<std::uint32_t*>(keys + capacity);
    const std::uint32_t query = blockIdx.x;
    const std::size_t first = std::size_t{query} * candidates.wanted;
    const auto found = static_cast<int>(candidates.found[query]);
    for (int i = threadIdx.x; i < found; i += threads) {
        keys[i] = ordered_key(values[first + i]);
        numbers[i] = candidates.rows[first + i];
    }
    __syncthreads();
    rows::sort_candidates<threads>(found, keys, numbers);
    rows::emit_candidates<threads>(found, keys, numbers, query, k, out);
    if (threadIdx.x == 0) out.found[query] = static_cast<std::uint32_t>(found);
}

__global__ __launch_bounds__(threads) void estimate_kernel(CountedRows counted, std::uint32_t k,
                                                           std::uint32_t functions, Answers out)
{
    const std::size_t first = std::size_t{blockIdx.x} * k;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < counted.found[blockIdx.x]; i += threads) {
        const std::uint32_t at = i + threadIdx.x;
        const std::uint32_t count = at < counted.found[blockIdx.x] ? counted.counts[first + at] : 0;
        if (count > 0) {
            out.values[first + at] = __ddiv_rn(-static_cast<double>(count), functions);
            out.rows[first + at] = counted.rows[first + at];
        }
        found += __syncthreads_count(count > 0);
    }
    if (threadIdx.x == 0) out.found[blockIdx.x] = found;
}

}  // namespace

void value_candidates(const RankedVectors& vectors, const Candidates& candidates, double* values, cudaStream_t stream)
{
    const std::uint64_t pairs = std::uint64_t{candidates.count} * candidates.wanted;
    const std::uint64_t most = std::max<std::uint64_t>(block_pairs, value_launch_elements / vectors.dimensions);
    for (std::uint64_t first = 0; first < pairs; first += most) {
        const std::uint64_t end = std::min(pairs, first + most);
        value_kernel<<<static_cast<unsigned>((end - first + block_pairs - 1) / block_pairs), threads, 0, stream>>>(
            vectors, candidates, first, end, values);
        check_launch("valuing candidates");
    }
}

bool ranks_on_device(std::uint32_t wanted, const Context& context)
{
    return wanted <= most_ranked && bytes_of_ranking(wanted) <= context.shared_bytes_per_block();
}

void rank_candidates(const Candidates& candidates, const double* values, std::uint32_t k, const Answers& out,
                     cudaStream_t stream)
{
    if (candidates.count == 0) return;
    const std::uint32_t capacity = std::bit_ceil(std::max(2U, candidates.wanted));
    allow_shared_memory(rank_kernel);
    rank_kernel<<<candidates.count, threads, bytes_of_ranking(candidates.wanted), stream>>>(candidates, values, k,
                                                                                            capacity, out);
    check_launch("ranking candidates");
}

void estimate_similarities(const CountedRows& counted, std::uint32_t count, std::uint32_t k, std::uint32_t functions,
                           const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    estimate_kernel<<<count, threads, 0, stream>>>(counted, k, functions, out);
    check_launch("estimating similarities");
}

}  // namespace pgwarp::cuda::matchcount
