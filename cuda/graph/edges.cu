#include "graph/edges.h"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "device/error.h"
#include "device/shared_memory.h"
#include "device/wait.h"
#include "graph/detours.h"
#include "graph/device_group.cuh"
#include "methods/graph/graph.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr unsigned threads = 128;  // four rows a block, a warp each
constexpr unsigned warps = threads / 32;
constexpr std::uint32_t launch_pairs = 1U << 27;  // rows * width^2 of a launch, so that it ends in time
constexpr std::uint32_t launch_rows = 1U << 20;   // rows whose edges a launch joins

// A warp that prunes: adds an atomic addition to the group of a search.
class PruningGroup : public DeviceGroup
{
public:
    __device__ PruningGroup() : DeviceGroup(32) {}
    __device__ void count_one(std::uint32_t* word) const { atomicAdd(word, 1U); }
};

__host__ __device__ constexpr std::uint32_t pruning_words(std::uint32_t width)
{
    return 2 * width + 2 * (1U << detour_bits(width));
}

__global__ __launch_bounds__(threads) void prune_kernel(const std::uint32_t* nearest, std::uint32_t first,
                                                        std::uint32_t end, std::uint32_t width, std::uint32_t degree,
                                                        std::uint32_t* out)
{
    extern __shared__ std::uint32_t shared[];
    const std::uint32_t row = first + blockIdx.x * warps + threadIdx.x / 32;
    if (row >= end) return;
    std::uint32_t* own = shared + threadIdx.x / 32 * pruning_words(width);
    const std::uint32_t bits = detour_bits(width);
    const DetourMemory memory{own, own + width, own + 2 * width, own + 2 * width + (1U << bits), bits};
    DetourOrder<PruningGroup> order(PruningGroup(), memory);
    order.draw(nearest, width, row, degree, out + static_cast<std::size_t>(row) * degree);
}

// Lists edges by rank and then by row. A stable sort by target keeps that order.
__global__ void list_edges(const std::uint32_t* forward, std::uint32_t rows, std::uint32_t degree, std::uint32_t* to,
                           std::uint32_t* from)
{
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= static_cast<std::size_t>(rows) * degree) return;
    const auto row = static_cast<std::uint32_t>(i % rows);
    const auto rank = static_cast<std::uint32_t>(i / rows);
    const std::uint32_t target = forward[static_cast<std::size_t>(row) * degree + rank];
    to[i] = target == no_neighbour ? rows : target;
    from[i] = row;
}

// begin[row] = the row's first edge in the list sorted by target, for row = 0 .. rows.
__global__ void find_begins(const std::uint32_t* to, std::size_t count, std::uint32_t rows, std::size_t* begin)
{
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (row > rows) return;
    std::size_t low = 0;
    std::size_t high = count;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (to[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    begin[row] = low;
}

__global__ __launch_bounds__(threads) void join_kernel(const std::uint32_t* forward, const std::uint32_t* sources,
                                                       const std::size_t* begin, std::uint32_t first_row,
                                                       std::uint32_t end, std::uint32_t degree, std::uint32_t* out)
{
    extern __shared__ std::uint32_t shared[];
    const std::uint32_t row = first_row + blockIdx.x * warps + threadIdx.x / 32;
    if (row >= end) return;
    std::uint32_t* own = shared + threadIdx.x / 32 * 6 * degree;
    const std::size_t first = begin[row];
    const std::size_t count = begin[row + 1] - first;
    const std::size_t place = static_cast<std::size_t>(row) * degree;
    join_edges(DeviceGroup(32), JoinMemory{own, own + 3 * degree}, forward + place, sources + first,
               static_cast<std::uint32_t>(count < degree ? count : degree), degree, out + place);
}

__global__ void start_reaching(const std::uint32_t* from, std::uint32_t count, std::uint32_t* depths,
                               std::uint32_t* parents)
{
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= count) return;
    depths[from[i]] = 0;
    parents[from[i]] = root_row;
}

__global__ void reach_kernel(const std::uint32_t* neighbours, std::uint32_t degree, const std::uint32_t* frontier,
                             std::uint32_t count, std::uint32_t depth, std::uint32_t* depths, std::uint32_t* parents,
                             std::uint32_t* next, std::uint32_t* next_count)
{
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= static_cast<std::size_t>(count) * degree) return;
    const std::uint32_t row = frontier[i / degree];
    const std::uint32_t to = neighbours[static_cast<std::size_t>(row) * degree + i % degree];
    if (to == no_neighbour) return;
    const std::uint32_t there = atomicCAS(&depths[to], unreached_row, depth);
    if (there == unreached_row) next[atomicAdd(next_count, 1U)] = to;
    if (there == unreached_row || there == depth) atomicMin(&parents[to], row);
}

void prune(Context& context, const std::uint32_t* nearest, std::uint32_t rows, std::uint32_t width,
           std::uint32_t degree, std::uint32_t* out, cudaStream_t stream)
{
    const std::size_t shared = warps * pruning_words(width) * sizeof(std::uint32_t);
    if (shared > context.shared_bytes_per_block()) throw std::bad_alloc();
    allow_shared_memory(prune_kernel);
    const std::uint32_t step = std::max(launch_pairs / (width * width), warps);
    for (std::uint32_t first = 0; first < rows;) {
        const std::uint32_t count = std::min(step, rows - first);
        prune_kernel<<<(count + warps - 1) / warps, threads, shared, stream>>>(nearest, first, first + count, width,
                                                                               degree, out);
        check_launch("pruning edges");
        first += count;
    }
}

}  // namespace

void draw_edges(Context& context, const std::uint32_t* nearest, std::uint32_t rows, std::uint32_t width,
                std::uint32_t degree, std::uint32_t* out, cudaStream_t stream)
{
    if (rows == 0) return;
    MemoryPool& pool = context.pool();
    const std::size_t count = std::size_t{rows} * degree;
    DeviceArray<std::uint32_t> forward(pool, count, "graph build", stream);
    prune(context, nearest, rows, width, degree, forward.data(), stream);
    DeviceArray<std::uint32_t> to(pool, 2 * count, "graph build", stream);
    DeviceArray<std::uint32_t> from(pool, 2 * count, "graph build", stream);
    list_edges<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(
        forward.data(), rows, degree, to.data(), from.data());
    check_launch("listing edges");
    cub::DoubleBuffer<std::uint32_t> keys(to.data(), to.data() + count);
    cub::DoubleBuffer<std::uint32_t> values(from.data(), from.data() + count);
    const int bits = std::bit_width(rows);
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits, stream), "sorting edges");
    DeviceArray<std::byte> space(pool, bytes, "graph build", stream);
    check(cub::DeviceRadixSort::SortPairs(space.data(), bytes, keys, values, count, 0, bits, stream), "sorting edges");
    DeviceArray<std::size_t> begin(pool, std::size_t{rows} + 1, "graph build", stream);
    find_begins<<<rows / threads + 1, threads, 0, stream>>>(keys.Current(), count, rows, begin.data());
    check_launch("finding reverse edges");
    for (std::uint32_t first = 0; first < rows;) {
        const std::uint32_t joined = std::min(launch_rows, rows - first);
        join_kernel<<<(joined + warps - 1) / warps, threads, warps * 6 * degree * sizeof(std::uint32_t), stream>>>(
            forward.data(), values.Current(), begin.data(), first, first + joined, degree, out);
        check_launch("joining edges");
        first += joined;
    }
    wait_for(stream, "drawing edges");
}

std::vector<std::uint32_t> reach_rows(Context& context, const std::uint32_t* neighbours, std::uint32_t rows,
                                      std::uint32_t degree, std::span<const std::uint32_t> from, cudaStream_t stream)
{
    MemoryPool& pool = context.pool();
    DeviceArray<std::uint32_t> parents(pool, rows, "graph build", stream);
    DeviceArray<std::uint32_t> depths(pool, rows, "graph build", stream);
    DeviceArray<std::uint32_t> frontiers(pool, 2 * std::size_t{rows} + 1, "graph build", stream);
    std::uint32_t* const counter = frontiers.data() + 2 * std::size_t{rows};
    check(cudaMemsetAsync(parents.data(), 0xff, parents.bytes(), stream), "reaching rows");
    check(cudaMemsetAsync(depths.data(), 0xff, depths.bytes(), stream), "reaching rows");
    std::uint32_t* frontier = frontiers.data();
    std::uint32_t* next = frontiers.data() + rows;
    auto count = static_cast<std::uint32_t>(from.size());
    check(cudaMemcpyAsync(frontier, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream), "reaching rows");
    start_reaching<<<(count + threads - 1) / threads, threads, 0, stream>>>(frontier, count, depths.data(),
                                                                            parents.data());
    check_launch("reaching rows");
    for (std::uint32_t depth = 1; count > 0; ++depth) {
        check(cudaMemsetAsync(counter, 0, sizeof(*counter), stream), "reaching rows");
        const std::size_t edges = std::size_t{count} * degree;
        reach_kernel<<<static_cast<unsigned>((edges + threads - 1) / threads), threads, 0, stream>>>(
            neighbours, degree, frontier, count, depth, depths.data(), parents.data(), next, counter);
        check_launch("reaching rows");
        read_back(&count, counter, sizeof(count), stream, "reaching rows");
        std::swap(frontier, next);
    }
    std::vector<std::uint32_t> host(rows);
    read_back(host.data(), parents.data(), parents.bytes(), stream, "reaching rows");
    return host;
}

}  // namespace pgwarp::cuda::graph
