#include "ivfadc/few_queries.h"

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "ivfadc/half_dot.cuh"
#include "ivfadc/probe_groups.cuh"
#include "rows/values.cuh"
#include "select/order_bits.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int score_threads = 128;
constexpr int score_values = 4;  // centroids of a half warp
constexpr std::uint32_t warp_centroids = 2 * score_values;
constexpr std::uint32_t score_rows = score_threads / 32 * warp_centroids;  // centroids of a block: whole groups
constexpr int rank_threads = 256;
constexpr int rank_lanes = 8;  // lanes that count for one list
constexpr std::uint32_t rank_rows = rank_threads / rank_lanes;

// Writes the query, the query in the space of the rows, and its norm to device memory. query: in shared memory.
__device__ void prepare_one(const MirrorView& mirror, const float* query, std::uint32_t at, float* original,
                            const PreparedQueries& out)
{
    const std::uint32_t dimensions = mirror.dimensions;
    const float* rotation = mirror.scans_codes ? mirror.code.rotation : nullptr;
    const bool centred = !mirror.scans_codes && mirror.metric == Metric::l2;
    const float* mean = mirror.scans_bytes ? mirror.centres.half.mean : mirror.half.mean;
    const float scale = mirror.scans_bytes ? 1.0F : mirror.half.scale;
    for (std::uint32_t d = threadIdx.x; d < dimensions; d += score_threads) {
        float value = query[d];
        original[static_cast<std::size_t>(at) * dimensions + d] = value;
        if (rotation != nullptr) {
            value = 0;
            for (std::uint32_t i = 0; i < dimensions; ++i) {
                value += rotation[static_cast<std::size_t>(d) * dimensions + i] * query[i];
            }
        } else if (centred) {
            value = static_cast<float>((static_cast<double>(value) - mean[d]) * scale);
        }
        out.moved[static_cast<std::size_t>(at) * dimensions + d] = value;
    }
    if (threadIdx.x >= 32) return;
    const double norm = __dsqrt_rn(canonical_dot(query, query, dimensions));
    if (threadIdx.x == 0) out.norms[at] = norm;
}

// Blocks with x < tiles score a group of centroids; the block after them prepares the query.
__global__ __launch_bounds__(score_threads) void score_centroids_kernel(MirrorView mirror, const float* given,
                                                                        std::uint32_t tiles, float* original,
                                                                        PreparedQueries out, float* coarse,
                                                                        std::size_t stride)
{
    extern __shared__ float4 query_pieces[];
    let_next_start();
    auto* query = reinterpret_cast<float*>(query_pieces);
    const std::uint32_t at = blockIdx.y;
    const float* from = given + static_cast<std::size_t>(at) * mirror.dimensions;
    if (blockIdx.x == tiles) {
        for (std::uint32_t d = threadIdx.x; d < mirror.dimensions; d += score_threads) query[d] = from[d];
        __syncthreads();
        return prepare_one(mirror, query, at, original, out);
    }
    const bool squared = mirror.metric == Metric::l2;
    for (std::uint32_t d = threadIdx.x; d < mirror.stride; d += score_threads) {
        float value = d < mirror.dimensions ? from[d] : 0.0F;
        if (squared && d < mirror.dimensions) {
            const double moved = (static_cast<double>(value) - mirror.centres.half.mean[d]) * mirror.centres.half.scale;
            value = 2 * static_cast<float>(moved);
        }
        query[d] = value;
    }
    __syncthreads();
    const std::uint32_t first = blockIdx.x * score_rows + threadIdx.x / 32 * warp_centroids;
    const float product = dot_rows<score_values, score_values>(
        mirror.centres.half.rows + static_cast<std::size_t>(first) * mirror.stride, mirror.stride, query_pieces);
    const std::uint32_t list = first + dot_row(score_values);
    if (threadIdx.x % (dot_lanes / score_values) == 0)
        coarse[at * stride + list] = mirror.centres.terms[list] - product;
}

struct RankShared {
    std::uint32_t keys[few_lists];
    std::uint32_t slots[few_lists];
};

// The place of a list in the order of scores: the number of lists before it, and their slots.
struct Place {
    std::uint32_t rank = 0;
    std::uint32_t slot = 0;
};

// Each of 8 neighbouring lanes counts an eighth of the lists. All 8 get the sums.
__device__ Place place_of(const RankShared& shared, std::uint32_t list, std::uint32_t lists)
{
    Place place;
    const std::uint32_t own = shared.keys[min(list, lists - 1)];
    const std::uint32_t padded = (lists + 31) / 32 * 32;
    for (std::uint32_t base = threadIdx.x % rank_lanes * 4; base < padded; base += rank_lanes * 4) {
        const uint4 keys = *reinterpret_cast<const uint4*>(shared.keys + base);
        const uint4 slots = *reinterpret_cast<const uint4*>(shared.slots + base);
        const auto count = [&](std::uint32_t key, std::uint32_t other, std::uint32_t rows) {
            const bool before = key < own || (key == own && other < list);
            place.rank += before ? 1 : 0;
            place.slot += before ? rows : 0;
        };
        count(keys.x, base, slots.x);
        count(keys.y, base + 1, slots.y);
        count(keys.z, base + 2, slots.z);
        count(keys.w, base + 3, slots.w);
    }
    for (int step = rank_lanes / 2; step > 0; step /= 2) {
        place.rank += __shfl_xor_sync(0xffffffffU, place.rank, step);
        place.slot += __shfl_xor_sync(0xffffffffU, place.slot, step);
    }
    return place;
}

__global__ __launch_bounds__(rank_threads) void rank_lists_kernel(MirrorView mirror, const float* coarse,
                                                                  std::size_t stride, std::uint32_t probes, float unit,
                                                                  ProbeArrays out)
{
    __shared__ RankShared shared;
    const std::uint32_t query = blockIdx.y;
    const float* scores = coarse + query * stride;
    const std::uint32_t padded = whole_groups(mirror.lists);
    for (std::uint32_t i = threadIdx.x; i < padded; i += rank_threads) {
        shared.slots[i] = i < mirror.lists ? whole_groups(mirror.list_length[i]) : 0;
    }
    wait_for_kernel_before();
    let_next_start();
    for (std::uint32_t i = threadIdx.x; i < padded; i += rank_threads) {
        shared.keys[i] = i < mirror.lists ? score_key(scores[i]) : no_key;  // padding comes last
    }
    __syncthreads();
    const std::uint32_t list = blockIdx.x * rank_rows + threadIdx.x / rank_lanes;
    const Place place = place_of(shared, list, mirror.lists);
    if (list >= mirror.lists || place.rank >= probes) return;
    const std::uint32_t key = shared.keys[list];
    const std::uint32_t rows = shared.slots[list];
    const float constant = key == no_key ? INFINITY : unit > 0 ? float_of_order(key) * unit : 0.0F;
    const std::uint32_t lane = threadIdx.x % rank_lanes;
    if (lane == 0) {
        const std::size_t pair = static_cast<std::size_t>(query) * probes + place.rank;
        out.list[pair] = list;
        out.slot[pair] = place.slot;
        out.constant[pair] = constant;
        if (place.rank == probes - 1) out.slots[query] = place.slot + rows;
    }
    write_groups(out.groups, query, place.slot, rows, mirror.list_begin[list], constant, lane, rank_lanes);
}

}  // namespace

void score_centroids(const MirrorView& mirror, const float* given, std::uint32_t count, float* original,
                     const PreparedQueries& for_rows, float* coarse, std::size_t stride, cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t tiles = whole_groups(mirror.lists) / score_rows;
    const std::size_t bytes = mirror.stride * sizeof(float);
    score_centroids_kernel<<<dim3(tiles + 1, count), score_threads, bytes, stream>>>(mirror, given, tiles, original,
                                                                                     for_rows, coarse, stride);
    check_launch("scores of centroids");
}

void rank_lists(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream)
{
    if (count == 0) return;
    const dim3 grid((mirror.lists + rank_rows - 1) / rank_rows, count);
    launch_chained(count <= chained_queries, rank_lists_kernel, grid, rank_threads, 0, stream, "ranking lists", mirror,
                   coarse, stride, probes, constant_unit(mirror), out);
}

}  // namespace pgwarp::cuda::ivfadc
