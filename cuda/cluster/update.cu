#include "cluster/update.h"

#include <algorithm>
#include <bit>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "cluster/device_math.cuh"
#include "device/error.h"
#include "numeric/kmeans_rules.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 256;
constexpr std::size_t piece_rows = 64;  // of the sorted order, summed by one warp
constexpr int column_step = 128;        // columns a warp sums at a time, four a lane
constexpr int strands = 8;

__global__ void number_kernel(std::uint32_t* out, std::size_t count)
{
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) out[i] = static_cast<std::uint32_t>(i);
}

// begin[c] = first place of cluster c in the sorted order.
__global__ void find_begins_kernel(const std::uint32_t* sorted, std::size_t count, std::size_t clusters,
                                   std::uint32_t* begin)
{
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i > count) return;
    const std::size_t from = i == 0 ? 0 : std::size_t{sorted[i - 1]} + 1;
    const std::size_t to = i == count ? clusters : std::size_t{sorted[i]};
    for (std::size_t c = from; c <= to; ++c) begin[c] = static_cast<std::uint32_t>(i);
}

struct Four {
    float value[4];
};

// Four columns of a row: neighbours where rows allow 16-byte loads, else 32 apart.
template <bool aligned>
__device__ inline Four load_four(const float* row, std::size_t first, int lane, std::size_t dimensions)
{
    Four four{};
    if constexpr (aligned) {
        if (first + lane * 4 < dimensions) {
            const float4 values = *reinterpret_cast<const float4*>(row + first + lane * 4);
            four = {{values.x, values.y, values.z, values.w}};
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (first + e * 32 + lane < dimensions) four.value[e] = row[first + e * 32 + lane];
    }
    return four;
}

template <bool aligned>
__device__ inline void store_four(float* row, std::size_t first, int lane, std::size_t dimensions, const Four& four)
{
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const std::size_t column = first + (aligned ? lane * 4 + e : e * 32 + lane);
        if (column < dimensions) row[column] = four.value[e];
    }
}

// Bounds a summand, so that sums of a piece stay finite.
__device__ inline float bounded(float value)
{
    constexpr float largest = 1e36F;
    return fminf(fmaxf(value, -largest), largest);
}

// A warp sums one piece of the sorted order, in the frame (precise far from the origin, finite at any magnitude). Where
// a piece p meets a cluster c the sum goes to slot p + c: along the order at least one of the two grows, so slots are
// distinct.
template <bool aligned>
__global__ __launch_bounds__(threads) void sum_pieces_kernel(const float* rows, std::size_t count,
                                                             std::size_t dimensions, FrameView frame,
                                                             const std::uint32_t* members, const std::uint32_t* sorted,
                                                             const std::uint32_t* settled, std::size_t first_piece,
                                                             float* partial)
{
    if (*settled != 0) return;
    const std::size_t piece = first_piece + (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    const std::size_t first = std::size_t{blockIdx.y} * column_step;
    const float scale = *frame.scale;
    const Four origin = load_four<aligned>(frame.origin, first, lane, dimensions);
    const std::size_t begin = piece * piece_rows;
    if (begin >= count) return;
    const std::size_t end = min(begin + piece_rows, count);
    Four sum{};
    std::uint32_t cluster = sorted[begin];
    constexpr int ahead = 8;
    for (std::size_t at = begin; at < end; at += ahead) {
        const std::size_t mine = min(at + lane % ahead, end - 1);
        const std::uint32_t member = members[mine];
        const std::uint32_t label = sorted[mine];
        Four values[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const std::size_t row = __shfl_sync(~0U, member, i);
            values[i] = load_four<aligned>(rows + row * dimensions, first, lane, dimensions);
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const std::uint32_t next = __shfl_sync(~0U, label, i);
            if (at + i >= end) break;
            if (next != cluster) {
                store_four<aligned>(partial + (piece + cluster) * dimensions, first, lane, dimensions, sum);
                sum = Four{};
                cluster = next;
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) sum.value[e] += bounded(fmaf(values[i].value[e], scale, -origin.value[e]));
        }
    }
    store_four<aligned>(partial + (piece + cluster) * dimensions, first, lane, dimensions, sum);
}

__global__ __launch_bounds__(column_step* strands) void finish_means_kernel(const float* partial,
                                                                            std::size_t dimensions, FrameView frame,
                                                                            const std::uint32_t* begin,
                                                                            const std::uint32_t* settled,
                                                                            float* centroids)
{
    __shared__ double shared[strands][column_step];
    if (*settled != 0) return;
    const std::size_t cluster = blockIdx.x;
    const std::size_t column = std::size_t{blockIdx.y} * column_step + threadIdx.x;
    const std::size_t from = begin[cluster];
    const std::size_t to = begin[cluster + 1];
    if (from == to) return;
    const std::size_t last_piece = (to - 1) / piece_rows;
    double sum = 0;
    if (column < dimensions) {
#pragma unroll 4
        for (std::size_t piece = from / piece_rows + threadIdx.y; piece <= last_piece; piece += strands)
            sum += partial[(piece + cluster) * dimensions + column];
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= dimensions) return;
    for (int s = 1; s < strands; ++s) sum += shared[s][threadIdx.x];
    const double mean = sum / static_cast<double>(to - from) + frame.origin[column];
    constexpr double largest = 3.402823466e38;
    centroids[cluster * dimensions + column] = static_cast<float>(fmin(fmax(mean / *frame.scale, -largest), largest));
}

// Keys that sort clusters by falling size.
__global__ void size_keys_kernel(const std::uint32_t* begin, std::size_t clusters, std::uint32_t count,
                                 std::uint32_t* keys)
{
    const std::size_t c = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (c < clusters) keys[c] = count - (begin[c + 1] - begin[c]);
}

// Clusters in order of falling size.
struct BySize {
    const std::uint32_t* keys;      // [clusters]: count - size
    const std::uint32_t* clusters;  // [clusters]: their numbers
    std::uint32_t cluster_count;
    std::uint32_t row_count;
    bool balanced;

    __device__ std::uint32_t size(std::uint32_t place) const { return row_count - keys[place]; }
    // The largest size of a cluster that moves.
    __device__ std::uint32_t small() const
    {
        if (!balanced) return 0;
        return static_cast<std::uint32_t>(small_cluster(row_count / cluster_count, size(cluster_count / 2)));
    }
    __device__ bool none_moves() const { return size(cluster_count - 1) > small(); }
};

// may_split[place] = whether a probed row of that cluster, one of the largest, differs from its centroid. A warp a
// cluster.
__global__ __launch_bounds__(threads) void probe_donors_kernel(BySize order, const float* rows, std::size_t dimensions,
                                                               const float* centroids, const std::uint32_t* begin,
                                                               const std::uint32_t* members,
                                                               const std::uint32_t* settled, std::uint32_t* may_split)
{
    if (*settled != 0 || order.none_moves()) return;
    const std::uint32_t place = (blockIdx.x * threads + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (place >= donor_places(order.cluster_count)) return;
    const std::size_t size = order.size(place);
    const std::uint32_t cluster = order.clusters[place];
    const float* centroid = centroids + cluster * dimensions;
    bool differs = false;
    for (std::size_t probe = 0; probe < probed_members && size > 1 && !differs; ++probe) {
        const float* row = rows + members[begin[cluster] + probe * size / probed_members] * dimensions;
        float difference = 0;
        float magnitude = 0;
        for (std::size_t e = lane; e < dimensions; e += 32) {
            difference = fmaxf(difference, fabsf(row[e] - centroid[e]));
            magnitude = fmaxf(magnitude, fabsf(centroid[e]));
        }
        differs = differs_from_mean(warp_largest(difference), warp_largest(magnitude));
    }
    if (lane == 0) may_split[place] = differs ? 1 : 0;
}

// Lists the places that may split in `donors`, in order, and counts the clusters that move. The cluster at place K - 1
// - t takes from donors[t % *donor_count]. The count is the first t whose cluster is not small, whose donor comes no
// earlier, or whose donor has given enough.
__global__ __launch_bounds__(1024) void count_moves_kernel(BySize order, const std::uint32_t* may_split,
                                                           const std::uint32_t* settled, std::uint32_t* donors,
                                                           std::uint32_t* donor_count, std::uint32_t* moved)
{
    using Scan = cub::BlockScan<std::uint32_t, 1024>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ std::uint32_t first;
    if (threadIdx.x == 0) *donor_count = *moved = first = 0;
    if (*settled != 0 || order.none_moves()) return;
    const auto places = static_cast<std::uint32_t>(donor_places(order.cluster_count));
    std::uint32_t listed = 0;
    for (std::uint32_t from = 0; from < places; from += blockDim.x) {
        const std::uint32_t place = from + threadIdx.x;
        const std::uint32_t taken = place < places ? may_split[place] : 0;
        std::uint32_t before = 0;
        std::uint32_t total = 0;
        Scan(scan).ExclusiveSum(taken, before, total);
        if (taken != 0) donors[listed + before] = place;
        listed += total;
        __syncthreads();
    }
    if (listed == 0) return;
    if (threadIdx.x == 0) first = order.cluster_count;
    __syncthreads();
    const std::uint32_t small = order.small();
    std::uint32_t own = order.cluster_count;
    for (std::uint32_t t = threadIdx.x; t < order.cluster_count; t += blockDim.x) {
        const std::uint32_t place = order.cluster_count - 1 - t;
        if (order.size(place) > small || donors[t % listed] >= place || t >= most_gifts * listed) {
            own = t;
            break;
        }
    }
    atomicMin(&first, own);
    __syncthreads();
    if (threadIdx.x != 0) return;
    *donor_count = listed;
    *moved = first;
}

// A block moves the clusters that take from one donor, one after the other. An empty cluster moves to a row of the
// donor, a small one takes half of the donor. Columns are independent.
__global__ void move_small_kernel(BySize order, const float* rows, std::size_t dimensions, const std::uint32_t* begin,
                                  const std::uint32_t* members, std::uint64_t seed, const std::uint32_t* donors,
                                  const std::uint32_t* donor_count, const std::uint32_t* moved, float* centroids)
{
    for (std::uint32_t d = blockIdx.x; d < min(*donor_count, *moved); d += gridDim.x) {
        const std::uint32_t donor = order.clusters[donors[d]];
        const std::uint32_t size = order.size(donors[d]);
        float* mean = centroids + donor * dimensions;
        for (std::uint32_t t = d; t < *moved; t += *donor_count) {
            const std::uint32_t place = order.cluster_count - 1 - t;
            const std::size_t member = members[begin[donor] + pick_member(seed, donor, place, size)];
            float* added = centroids + std::size_t{order.clusters[place]} * dimensions;
            const float* picked = rows + member * dimensions;
            const bool empty = order.size(place) == 0;
            for (std::size_t e = threadIdx.x; e < dimensions; e += blockDim.x) {
                const SplitValue halves = empty ? SplitValue{picked[e], mean[e]} : split_value(mean[e], picked[e]);
                added[e] = halves.toward;
                mean[e] = halves.away;
            }
        }
    }
}

__global__ __launch_bounds__(threads) void normalise_kernel(float* centroids, std::size_t clusters,
                                                            std::size_t dimensions, const std::uint32_t* settled)
{
    if (*settled != 0) return;
    const std::size_t c = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (c >= clusters) return;
    float* values = centroids + c * dimensions;
    double squares = 0;
    for (std::size_t e = lane; e < dimensions; e += 32) squares += static_cast<double>(values[e]) * values[e];
    squares = warp_sum(squares);
    const double norm = sqrt(squares);
    if (!(norm > 0)) return;
    for (std::size_t e = lane; e < dimensions; e += 32) values[e] = static_cast<float>(values[e] / norm);
}

unsigned blocks_of(std::size_t count, std::size_t size)
{
    return static_cast<unsigned>((count + size - 1) / size);
}

int bits_of(std::size_t largest)
{
    return std::max(1, static_cast<int>(std::bit_width(largest)));
}

}  // namespace

CentroidUpdate::CentroidUpdate(Context& context, std::size_t count, std::size_t dimensions, std::size_t clusters,
                               cudaStream_t stream)
    : count_(count), dimensions_(dimensions), clusters_(clusters)
{
    MemoryPool& pool = context.pool();
    constexpr const char* name = "cluster workspace";
    for (auto* array : {&row_numbers_, &sorted_labels_, &members_})
        *array = DeviceArray<std::uint32_t>(pool, count, name, stream);
    for (auto* array : {&size_keys_, &sorted_keys_, &cluster_numbers_, &by_size_})
        *array = DeviceArray<std::uint32_t>(pool, clusters, name, stream);
    for (auto* array : {&may_split_, &donors_})
        *array = DeviceArray<std::uint32_t>(pool, donor_places(clusters), name, stream);
    donor_count_ = DeviceArray<std::uint32_t>(pool, 1, name, stream);
    begin_ = DeviceArray<std::uint32_t>(pool, clusters + 1, name, stream);
    const std::size_t pieces = (count + piece_rows - 1) / piece_rows;
    partial_ = DeviceArray<float>(pool, (pieces + clusters) * dimensions, name, stream);
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, row_numbers_.data(), row_numbers_.data(), row_numbers_.data(),
                                          row_numbers_.data(), std::max(count, clusters), 0, 32, stream),
          "sizing a sort");
    workspace_ = DeviceArray<unsigned char>(pool, bytes, name, stream);
    number_kernel<<<blocks_of(count, threads), threads, 0, stream>>>(row_numbers_.data(), count);
    number_kernel<<<blocks_of(clusters, threads), threads, 0, stream>>>(cluster_numbers_.data(), clusters);
    check_launch("numbers");
}

void CentroidUpdate::sort(const std::uint32_t* keys, std::uint32_t* sorted_keys, const std::uint32_t* values,
                          std::uint32_t* sorted_values, std::size_t count, int bits, cudaStream_t stream)
{
    std::size_t bytes = workspace_.size();
    check(cub::DeviceRadixSort::SortPairs(workspace_.data(), bytes, keys, sorted_keys, values, sorted_values, count, 0,
                                          bits, stream),
          "sorting by label");
}

void CentroidUpdate::group(const std::uint32_t* labels, cudaStream_t stream)
{
    sort(labels, sorted_labels_.data(), row_numbers_.data(), members_.data(), count_, bits_of(clusters_ - 1), stream);
    find_begins_kernel<<<blocks_of(count_ + 1, threads), threads, 0, stream>>>(sorted_labels_.data(), count_, clusters_,
                                                                               begin_.data());
    check_launch("cluster begins");
}

void CentroidUpdate::average(const float* rows, const FrameView& frame, float* centroids, const std::uint32_t* settled,
                             cudaStream_t stream)
{
    const std::size_t pieces = (count_ + piece_rows - 1) / piece_rows;
    const unsigned column_steps = blocks_of(dimensions_, column_step);
    const auto kernel = dimensions_ % 4 == 0 ? sum_pieces_kernel<true> : sum_pieces_kernel<false>;
    // About 0.15 ms of memory traffic a launch.
    const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 27) / (dimensions_ * piece_rows));
    for (std::size_t first = 0; first < pieces; first += step) {
        const dim3 grid(blocks_of(std::min(step, pieces - first) * 32, threads), column_steps);
        kernel<<<grid, threads, 0, stream>>>(rows, count_, dimensions_, frame, members_.data(), sorted_labels_.data(),
                                             settled, first, partial_.data());
        check_launch("segment sums");
    }
    finish_means_kernel<<<dim3(static_cast<unsigned>(clusters_), column_steps), dim3(column_step, strands), 0,
                          stream>>>(partial_.data(), dimensions_, frame, begin_.data(), settled, centroids);
    check_launch("means");
}

void CentroidUpdate::fill_small(const float* rows, bool balanced, std::uint64_t seed, float* centroids,
                                const std::uint32_t* settled, std::uint32_t* moved, cudaStream_t stream)
{
    const auto clusters = static_cast<std::uint32_t>(clusters_);
    const auto count = static_cast<std::uint32_t>(count_);
    size_keys_kernel<<<blocks_of(clusters_, threads), threads, 0, stream>>>(begin_.data(), clusters_, count,
                                                                            size_keys_.data());
    check_launch("cluster sizes");
    sort(size_keys_.data(), sorted_keys_.data(), cluster_numbers_.data(), by_size_.data(), clusters_, bits_of(count_),
         stream);
    const BySize order{sorted_keys_.data(), by_size_.data(), clusters, count, balanced};
    probe_donors_kernel<<<blocks_of(donor_places(clusters_) * 32, threads), threads, 0, stream>>>(
        order, rows, dimensions_, centroids, begin_.data(), members_.data(), settled, may_split_.data());
    check_launch("probe large clusters");
    count_moves_kernel<<<1, 1024, 0, stream>>>(order, may_split_.data(), settled, donors_.data(), donor_count_.data(),
                                               moved);
    check_launch("count moves");
    move_small_kernel<<<std::min(clusters, 1024U), 128, 0, stream>>>(order, rows, dimensions_, begin_.data(),
                                                                     members_.data(), seed, donors_.data(),
                                                                     donor_count_.data(), moved, centroids);
    check_launch("move small clusters");
}

void normalise_centroids(float* centroids, std::size_t clusters, std::size_t dimensions, const std::uint32_t* settled,
                         cudaStream_t stream)
{
    normalise_kernel<<<blocks_of(clusters * 32, threads), threads, 0, stream>>>(centroids, clusters, dimensions,
                                                                                settled);
    check_launch("normalise centroids");
}

}  // namespace pgwarp::cuda
