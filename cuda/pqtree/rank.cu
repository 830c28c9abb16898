#include "pqtree/rank.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "pqtree/block.cuh"
#include "pqtree/row_value.cuh"
#include "rows/candidates.cuh"
#include "rows/near_values.cuh"
#include "select/key.cuh"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr int rank_threads = 256;
constexpr int few_threads = 512;
constexpr int value_threads = 256;
constexpr std::uint32_t few = 132;                          // queries that get a multiprocessor each, or more
constexpr std::uint32_t most_near = 4096;                   // dimensions
constexpr std::size_t most_table = std::size_t{96} << 10;   // bytes of centroids in shared memory
constexpr std::size_t block_room = std::size_t{220} << 10;  // shared memory of blocks that copy the centroids once

struct RankJob {
    const float* queries;
    Proposals proposals;
    std::uint32_t count;
    std::uint32_t wanted;  // proposals
    std::uint32_t blocks;  // that have proposed for a query
    std::uint32_t stride;  // keys of a block
    std::uint32_t k;
    bool polled;
    bool near;   // chooses rows by near values
    bool table;  // copies the centroids to shared memory
    Answers out;
};

PGWARP_HOST_DEVICE std::uint32_t padded_query(const MirrorView& mirror)
{
    return (mirror.dimensions + rows::piece_elements - 1) / rows::piece_elements * rows::piece_elements;
}

// An odd stride, so that the same centroid of neighbouring dimensions lies in different banks.
PGWARP_HOST_DEVICE std::uint32_t table_stride(const MirrorView& mirror)
{
    return mirror.tree.padded_level1 + 1;
}

// The shared memory of a block.
struct RankSpace {
    std::uint64_t* values = nullptr;     // [size]: keys of values, before that the bounds of near sums
    std::uint32_t* rows = nullptr;       // [size]
    std::uint32_t* positions = nullptr;  // [size]
    float* query = nullptr;              // [padded_query], where rows are chosen
    float* mean = nullptr;               // the same
    float2* lines = nullptr;             // [threads / 8][line_parts], where values come from codes
    float* table = nullptr;              // [dimensions][table_stride]
    SelectKey* gathered = nullptr;       // [blocks][stride], where there are several
    RankShared* select = nullptr;        // where there are several, and where rows are chosen
    std::size_t bytes = 0;

    PGWARP_HOST_DEVICE RankSpace(const MirrorView& mirror, const RankJob& job, int threads, std::byte* memory)
    {
        const std::uint32_t size = power_of_two_above(job.wanted < 2 ? 2 : job.wanted);
        const auto take = [&](auto& pointer, std::size_t count) {
            pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(memory + bytes);
            bytes += (count * sizeof(*pointer) + 15) / 16 * 16;
        };
        take(values, size);
        take(rows, size);
        take(positions, size);
        if (job.blocks > 1) take(gathered, std::size_t{job.blocks} * job.stride);
        if (job.blocks > 1 || job.near) take(select, 1);
        if (job.near) {
            take(query, padded_query(mirror));
            take(mean, padded_query(mirror));
        }
        if (mirror.values_of_codes()) take(lines, std::size_t(threads / 8) * mirror.tree.line_parts);
        if (job.table) take(table, std::size_t{mirror.dimensions} * table_stride(mirror));
    }
};

// The canonical norm of a query, in all lanes, where values depend on it. All lanes of a warp call.
__device__ double norm_of(const MirrorView& mirror, const float* query)
{
    if (mirror.metric != Metric::inner_product) return 0;
    return __dsqrt_rn(rows::canonical_dot(query, query, mirror.dimensions));
}

// Computes the values of positions [count], a group of 8 lanes each. Ends with a barrier.
template <int Threads>
__device__ void compute_values(const MirrorView& mirror, const RankSpace& space, const DecodeSpace& decode,
                               const float* given, std::uint32_t count)
{
    const double norm = norm_of(mirror, given);
    for (std::uint32_t base = 0; base < count; base += Threads / 8) {
        // Uniform in a warp, as all lanes take part in the shuffles.
        if (base + threadIdx.x / 32 * 4 >= count) break;
        const std::uint32_t i = base + threadIdx.x / 8;
        const std::uint32_t position = space.positions[min(i, count - 1)];
        const double value = row_value(mirror, decode, given, norm, position);
        if (i < count && threadIdx.x % 8 == 0) {
            space.values[i] = order_of(value);
            space.rows[i] = mirror.row_at[position];
        }
    }
    __syncthreads();
}

// Gathers the keys that the blocks of a query have proposed. Returns their number. Ends with a barrier.
template <int Threads>
__device__ std::uint32_t gather_keys(const RankJob& job, const RankSpace& space, std::uint32_t query)
{
    const SelectKey* keys = job.proposals.keys + std::size_t{query} * job.blocks * job.stride;
    const std::uint32_t* counts = job.proposals.counts + std::size_t{query} * job.blocks;
    // All that a thread usually reads is on its way together.
    std::uint32_t count[most_blocks];
    SelectKey first[most_blocks];
#pragma unroll
    for (std::uint32_t block = 0; block < most_blocks; ++block) {
        count[block] = block < job.blocks ? counts[block] : 0;
        if (block < job.blocks && threadIdx.x < job.stride) first[block] = keys[block * job.stride + threadIdx.x];
    }
    std::uint32_t before = 0;
#pragma unroll
    for (std::uint32_t block = 0; block < most_blocks; ++block) {
        if (threadIdx.x < count[block]) space.gathered[before + threadIdx.x] = first[block];
        for (std::uint32_t i = threadIdx.x + Threads; i < count[block]; i += Threads)
            space.gathered[before + i] = keys[block * job.stride + i];
        before += count[block];
    }
    __syncthreads();
    return before;
}

// Writes the positions of a query's best proposals. Returns their number.
template <int Threads>
__device__ std::uint32_t read_proposals(const RankJob& job, const RankSpace& space, std::uint32_t query)
{
    const SelectKey* keys = job.proposals.keys + std::size_t{query} * job.stride;
    std::uint32_t count;
    if (Threads == few_threads && job.blocks > 1) {
        float bound;
        count = gather_keys<Threads>(job, space, query);
        count = keep_smallest<Threads>(space.gathered, count, job.wanted, job.wanted, *space.select, bound);
        keys = space.gathered;
    } else {
        count = job.proposals.counts[query];
    }
    for (std::uint32_t i = threadIdx.x; i < count; i += Threads) space.positions[i] = key_id(keys[i]);
    return count;
}

template <int Threads>
__device__ void rank_query(const MirrorView& mirror, const RankJob& job, const RankSpace& space,
                           const DecodeSpace& decode, std::uint32_t query)
{
    const float* given = job.queries + std::size_t{query} * mirror.dimensions;
    std::uint32_t count = read_proposals<Threads>(job, space, query);
    if (job.near) {
        for (std::uint32_t d = threadIdx.x; d < padded_query(mirror); d += Threads) {
            space.query[d] = d < mirror.dimensions ? given[d] : 0;
            space.mean[d] = d < mirror.dimensions && mirror.half.mean != nullptr ? mirror.half.mean[d] : 0;
        }
    }
    __syncthreads();
    if (job.near && count > job.k + rows::spare_rows) {
        auto* bounds = reinterpret_cast<float*>(space.values);
        const rows::NearSpace near{space.query,    space.mean,   bounds,
                                   bounds + count, space.select, norm_of(mirror, given)};
        count = rows::keep_near_rows<Threads>(mirror, space.positions, count, job.k, near);
    }
    compute_values<Threads>(mirror, space, decode, given, count);
    if (counting_serves(count)) {
        count_rows(space.values, space.rows, count);
    } else {
        rows::sort_candidates<Threads>(static_cast<int>(count), space.values, space.rows);
    }
    rows::emit_candidates<Threads>(static_cast<int>(count), space.values, space.rows, query, job.k, job.out);
    if (job.polled) __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) job.out.found[query] = count;
}

// A block ranks the proposals of a query, or of several.
template <int Threads>
__global__ __launch_bounds__(Threads) void rank_kernel(MirrorView mirror, RankJob job)
{
    extern __shared__ std::uint64_t memory[];
    const RankSpace space(mirror, job, Threads, reinterpret_cast<std::byte*>(memory));
    const std::uint32_t padded = mirror.tree.padded_level1;
    DecodeSpace decode{mirror.tree.level1, padded, space.lines};
    if (job.table) {
        for (std::uint32_t i = threadIdx.x; i < mirror.dimensions * padded; i += Threads)
            space.table[i / padded * table_stride(mirror) + i % padded] = mirror.tree.level1[i];
        decode.centroids = space.table;
        decode.stride = table_stride(mirror);
    }
    wait_for_kernel_before();
    for (std::uint32_t query = blockIdx.x; query < job.count; query += gridDim.x)
        rank_query<Threads>(mirror, job, space, decode, query);
}

template <int Threads>
void launch(const MirrorView& mirror, const RankJob& job, std::uint32_t blocks, bool early, cudaStream_t stream)
{
    const RankSpace space(mirror, job, Threads, nullptr);
    allow_shared_memory(rank_kernel<Threads>);
    launch_chained(early, rank_kernel<Threads>, blocks, Threads, space.bytes, stream, "ranking proposals", mirror, job);
}

__global__ __launch_bounds__(rank_threads) void answer_kernel(MirrorView mirror, Proposals proposals,
                                                              std::uint32_t wanted, Answers out)
{
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t count = proposals.counts[query];
    for (std::uint32_t i = threadIdx.x; i < count; i += rank_threads) {
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
    extern __shared__ float2 lines[];  // [value_threads / 8][line_parts]
    const DecodeSpace decode{mirror.tree.level1, mirror.tree.padded_level1, lines};
    const std::uint32_t at = blockIdx.x * (value_threads / 8) + threadIdx.x / 8;
    const std::uint32_t position = first + min(at, count - 1);
    const bool padding = mirror.row_at[position] == rows::no_row;
    // Lanes on padding compute another position's value, so that all take part in the shuffles.
    const double value = row_value(mirror, decode, query, norm_of(mirror, query), padding ? 0 : position);
    if (at < count && threadIdx.x % 8 == 0) values[at] = padding ? NAN : value;
}

// The numbers of a job that decide its shared memory.
RankJob job_of(const MirrorView& mirror, const ProposePlan& plan)
{
    const std::size_t table = std::size_t{mirror.dimensions} * table_stride(mirror) * sizeof(float);
    RankJob job{};
    job.wanted = plan.wanted;
    job.blocks = plan.blocks;
    job.stride = plan.stride();
    job.near = rows::has_near_values(mirror) && mirror.dimensions <= most_near;
    job.table = mirror.values_of_codes() && table <= most_table;
    // A smaller device reads the centroids from memory.
    if (RankSpace(mirror, job, few_threads, nullptr).bytes > plan.shared_bytes) job.table = false;
    return job;
}

}  // namespace

std::size_t rank_shared_bytes(const MirrorView& mirror, const ProposePlan& plan)
{
    return RankSpace(mirror, job_of(mirror, plan), few_threads, nullptr).bytes;
}

void rank_proposals(const MirrorView& mirror, const float* queries, std::uint32_t count, const Proposals& proposals,
                    const ProposePlan& plan, std::uint32_t k, bool polled, const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    RankJob job = job_of(mirror, plan);
    job.queries = queries;
    job.proposals = proposals;
    job.count = count;
    job.k = k;
    job.polled = polled;
    job.out = out;
    if (count <= few) return launch<few_threads>(mirror, job, count, count <= rows::chained_queries, stream);
    // As many blocks with a table as are there at a time; registers allow four.
    const std::size_t bytes = RankSpace(mirror, job, rank_threads, nullptr).bytes + 1024;
    const std::size_t resident = few * std::clamp<std::size_t>(block_room / bytes, 1, 1024 / rank_threads);
    const std::size_t blocks = job.table ? std::min<std::size_t>(count, resident) : count;
    launch<rank_threads>(mirror, job, static_cast<std::uint32_t>(blocks), false, stream);
}

void answer_proposals(const MirrorView& mirror, std::uint32_t count, const Proposals& proposals, std::uint32_t wanted,
                      const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    answer_kernel<<<count, rank_threads, 0, stream>>>(mirror, proposals, wanted, out);
    check_launch("writing proposals");
}

void all_values(const MirrorView& mirror, const float* query, std::uint32_t first, std::uint32_t count, double* values,
                cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t blocks = (count + value_threads / 8 - 1) / (value_threads / 8);
    const std::size_t bytes = value_threads / 8 * std::size_t{mirror.tree.line_parts} * sizeof(float2);
    allow_shared_memory(all_values_kernel);
    all_values_kernel<<<blocks, value_threads, bytes, stream>>>(mirror, query, first, count, values);
    check_launch("values of rows");
}

}  // namespace pgwarp::cuda::pqtree
