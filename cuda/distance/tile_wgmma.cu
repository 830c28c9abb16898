// The matrix kernel for Hopper. A block works on 256 queries: four warp groups of 64 each multiply tiles of 128 rows,
// which a fifth brings to shared memory by bulk tensor copies, some stages ahead. While one warp group looks through
// its scores, the tensor cores serve the others. Up to 256 dimensions the queries stay in shared memory; above, their
// blocks are streamed with the rows', and two blocks of a cluster share them, as the L2 would be the limit otherwise.
#include <cuda.h>

#include <algorithm>
#include <mutex>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/hopper.cuh"
#include "device/shared_memory.h"
#include "distance/tile_epilogue.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t block_halves = 64;  // of a dimension block: rows of 128 bytes, the width of the swizzle
constexpr std::uint32_t row_block_bytes = tile_rows * block_halves * 2;
constexpr std::uint32_t query_block_bytes = tile_queries * block_halves * 2;
constexpr std::uint32_t penalty_bytes = tile_rows * 4;
constexpr std::uint32_t resident_dimensions = 256;
constexpr std::uint32_t consumer_warps = 16;
constexpr unsigned consumer_threads = consumer_warps * 32;
constexpr unsigned block_threads = consumer_threads + 128;
constexpr std::uint32_t list_entries = 96;  // of each warp's list of passed scores, which are appended together
constexpr std::uint32_t largest_stages = 8;
constexpr unsigned cluster_blocks = 2;

struct Control {
    std::uint64_t full[largest_stages];
    std::uint64_t empty[largest_stages];
    std::uint64_t queries_full;
    std::uint64_t queries_empty;
};

struct TileArguments {
    Proposals out;
    const float* penalties;
    const float* factors;
    std::uint32_t first_tile;
    std::uint32_t tiles;
    std::uint32_t splits;  // of the tiles
    std::uint32_t query_tiles;
    std::uint32_t query_group;  // query tiles that are worked on at a time
    std::uint32_t queries;
    std::uint32_t dimension_blocks;
    std::uint32_t stages;
};

// What a kernel reads beside rows and queries. Kernels that don't read it have no such argument: it would take
// registers.
enum class Extra : std::uint8_t { none, bytes, masks };
template <Extra extra>
struct AllArguments : TileArguments {
};
template <>
struct AllArguments<Extra::bytes> : TileArguments {
    AddedBytes added;
};
template <>
struct AllArguments<Extra::masks> : TileArguments {
    RowMasks masks;
};

// Shared memory: stages (1024-byte aligned), queries if they stay, penalties of each stage, lists, barriers.
template <bool resident>
struct Layout {
    std::uint32_t stages;
    std::uint32_t queries;
    std::uint32_t penalties;
    std::uint32_t lists;
    std::uint32_t control;
    std::uint32_t bytes;

    static constexpr std::uint32_t stage_bytes = row_block_bytes + (resident ? 0 : query_block_bytes);

    __host__ __device__ Layout(std::uint32_t stage_count, std::uint32_t dimension_blocks)
        : stages(0),
          queries(stage_count * stage_bytes),
          penalties(queries + (resident ? dimension_blocks * query_block_bytes : 0)),
          lists(penalties + stage_count * penalty_bytes),
          control(lists + consumer_warps * list_entries * 8),
          bytes(control + static_cast<std::uint32_t>(sizeof(Control)))
    {
    }
};

#if PGWARP_WARPGROUP

constexpr std::uint32_t list_full = list_entries - 32;

// A piece of work: some tiles of rows for one tile of queries.
struct Unit {
    std::uint32_t query_tile;
    std::uint32_t begin;
    std::uint32_t end;
};

__device__ Unit unit_of(const TileArguments& arguments, std::uint32_t index)
{
    const std::uint32_t group = index / (arguments.query_group * arguments.splits);
    const std::uint32_t within = index - group * arguments.query_group * arguments.splits;
    const std::uint32_t first = group * arguments.query_group;
    const std::uint32_t width = min(arguments.query_group, arguments.query_tiles - first);
    const std::uint64_t split = within / width;
    return {first + within % width, static_cast<std::uint32_t>(split * arguments.tiles / arguments.splits),
            static_cast<std::uint32_t>((split + 1) * arguments.tiles / arguments.splits)};
}

// A place in the ring of stages, and the parity of the pass over the ring.
struct Ring {
    std::uint32_t stage = 0;
    std::uint32_t phase = 0;
    __device__ void advance(std::uint32_t stages)
    {
        if (++stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

__device__ std::uint32_t address_of(const std::uint64_t& barrier)
{
    return hopper::shared_address(&barrier);
}

// One thread loads queries, rows and penalties into shared memory.
template <bool resident>
__device__ void produce(const TileArguments& arguments, const CUtensorMap* query_map, const CUtensorMap* row_map,
                        unsigned char* shared, Control& control)
{
    const Layout<resident> layout(arguments.stages, arguments.dimension_blocks);
    const std::uint32_t base = hopper::shared_address(shared);
    const std::uint32_t workers = resident ? gridDim.x : gridDim.x / cluster_blocks;
    const std::uint32_t worker = resident ? blockIdx.x : blockIdx.x / cluster_blocks;
    const std::uint32_t rank = resident ? 0 : hopper::cluster_rank();
    const std::uint32_t step = resident ? 1 : cluster_blocks;
    Ring ring;
    std::uint32_t query_phase = 0;
    for (std::uint32_t index = worker; index < arguments.query_tiles * arguments.splits; index += workers) {
        const Unit unit = unit_of(arguments, index);
        const int first_query = static_cast<int>(unit.query_tile * tile_queries);
        if constexpr (resident) {
            const std::uint32_t barrier = address_of(control.queries_full);
            hopper::barrier_wait(address_of(control.queries_empty), query_phase ^ 1);
            hopper::barrier_expect(barrier, arguments.dimension_blocks * query_block_bytes);
            for (std::uint32_t block = 0; block < arguments.dimension_blocks; ++block) {
                const std::uint32_t to = base + layout.queries + block * query_block_bytes;
                const int x = static_cast<int>(block * block_halves);
                hopper::load_box(to, query_map, barrier, x, first_query);
                hopper::load_box(to + query_block_bytes / 2, query_map, barrier, x, first_query + 128);
            }
            query_phase ^= 1;
        }
        for (std::uint32_t tile = unit.begin; tile < unit.end; tile += step) {
            // The odd block of a cluster repeats the last tile when there is none left for it.
            const std::uint32_t own = arguments.first_tile + min(tile + rank, unit.end - 1);
            for (std::uint32_t block = 0; block < arguments.dimension_blocks; ++block) {
                const bool last = block + 1 == arguments.dimension_blocks;
                const std::uint32_t full = address_of(control.full[ring.stage]);
                const std::uint32_t stage = base + ring.stage * layout.stage_bytes;
                const int x = static_cast<int>(block * block_halves);
                hopper::barrier_wait(address_of(control.empty[ring.stage]), ring.phase ^ 1);
                hopper::barrier_expect(full, layout.stage_bytes + (last ? penalty_bytes : 0));
                hopper::load_box(stage, row_map, full, x, static_cast<int>(own * tile_rows));
                if constexpr (!resident) {
                    const std::uint32_t half = rank * (query_block_bytes / 2);
                    hopper::load_box_to_all(stage + row_block_bytes + half, query_map, full, x,
                                            first_query + static_cast<int>(rank) * 128, 3);
                }
                if (last) {
                    hopper::load_bytes(base + layout.penalties + ring.stage * penalty_bytes,
                                       arguments.penalties + std::size_t{own} * tile_rows, penalty_bytes, full);
                }
                ring.advance(arguments.stages);
            }
        }
    }
}

template <bool resident>
__device__ void release(std::uint32_t barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    if constexpr (resident) {
        hopper::barrier_arrive(barrier);
    } else {
        for (unsigned block = 0; block < cluster_blocks; ++block) hopper::barrier_arrive_at(barrier, block);
    }
}

// Products of this warp group's 64 queries with the tile of the next stages. Leaves the last stage unreleased: its
// penalties are read next. A group without queries only keeps the ring turning.
template <bool resident>
__device__ void multiply_tile(const TileArguments& arguments, std::uint32_t base, Control& control, bool active,
                              Ring& ring, float (&products)[thread_products])
{
    const Layout<resident> layout(arguments.stages, arguments.dimension_blocks);
    const std::uint32_t group = threadIdx.x / 128;
    std::uint32_t before = 0;
    for (std::uint32_t block = 0; block < arguments.dimension_blocks; ++block) {
        const std::uint32_t stage = base + ring.stage * layout.stage_bytes;
        const std::uint32_t queries =
            (resident ? base + layout.queries + block * query_block_bytes : stage + row_block_bytes) +
            group * (64 * block_halves * 2);
        hopper::barrier_wait(address_of(control.full[ring.stage]), ring.phase);
        if (active) {
            const std::uint64_t a = hopper::matrix_descriptor(queries);
            const std::uint64_t b = hopper::matrix_descriptor(stage);
            hopper::matrix_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k) hopper::multiply(products, a + 2 * k, b + 2 * k, block > 0 || k > 0 ? 1 : 0);
            hopper::matrix_commit();
        }
        if (block > 0) {
            hopper::matrix_wait<1>();
            release<resident>(address_of(control.empty[before]));
        }
        before = ring.stage;
        if (block + 1 < arguments.dimension_blocks) ring.advance(arguments.stages);
    }
    hopper::matrix_wait<0>();
}

// The passed scores of a warp that are not yet appended.
struct WarpList {
    uint2* entries;  // in shared memory: score; query within the tile << 24 | position within the unit
    std::uint32_t count = 0;

    // Called by all lanes.
    __device__ void add(bool hit, uint2 entry)
    {
        const std::uint32_t hits = __ballot_sync(~0U, hit);
        const std::uint32_t before = hits & ((1U << (threadIdx.x % 32)) - 1);
        if (hit) entries[count + __popc(before)] = entry;
        count += __popc(hits);
    }
    __device__ void give_out(const TileArguments& arguments, const Unit& unit)
    {
        __syncwarp();
        for (std::uint32_t i = threadIdx.x % 32; i < count; i += 32) {
            const uint2 entry = entries[i];
            append(arguments.out, unit.query_tile * tile_queries + (entry.y >> 24),
                   (arguments.first_tile + unit.begin) * tile_rows + (entry.y & 0xFFFFFF), __uint_as_float(entry.x));
        }
        __syncwarp();
        count = 0;
    }
};

template <bool maxima, bool resident, Extra extra>
__device__ void consume(const AllArguments<extra>& arguments, unsigned char* shared, Control& control)
{
    const Layout<resident> layout(arguments.stages, arguments.dimension_blocks);
    const std::uint32_t base = hopper::shared_address(shared);
    WarpList list{reinterpret_cast<uint2*>(shared + layout.lists) + threadIdx.x / 32 * list_entries};
    const std::uint32_t workers = resident ? gridDim.x : gridDim.x / cluster_blocks;
    const std::uint32_t worker = resident ? blockIdx.x : blockIdx.x / cluster_blocks;
    const std::uint32_t rank = resident ? 0 : hopper::cluster_rank();
    const std::uint32_t step = resident ? 1 : cluster_blocks;
    const std::uint32_t query = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;  // and the one 8 further on
    Ring ring;
    std::uint32_t query_phase = 0;
    float products[thread_products];
    for (std::uint32_t index = worker; index < arguments.query_tiles * arguments.splits; index += workers) {
        const Unit unit = unit_of(arguments, index);
        const std::uint32_t slot = unit.query_tile * tile_queries + query;
        const bool active = unit.query_tile * tile_queries + threadIdx.x / 128 * 64 < arguments.queries;
        const float2 factor{arguments.factors[slot], arguments.factors[slot + 8]};
        float2 threshold{};
        if constexpr (!maxima) threshold = {arguments.out.thresholds[slot], arguments.out.thresholds[slot + 8]};
        const std::uint32_t* masks[2]{};
        if constexpr (extra == Extra::masks) {
            for (int i = 0; active && i < 2; ++i) {
                masks[i] = arguments.masks.words + threadIdx.x % 4 +
                           std::size_t{arguments.masks.of_slot[slot + 8 * i]} * arguments.out.maxima_width;
            }
        }
        if constexpr (resident) hopper::barrier_wait(address_of(control.queries_full), query_phase);
        for (std::uint32_t first = unit.begin; first < unit.end; first += step) {
            const std::uint32_t tile = first + rank;
            uint2 word{};
            if constexpr (extra == Extra::masks) {
                // Asked for before the products, behind which the wait for memory is hidden.
                if (active && tile < unit.end) word = {__ldg(masks[0] + 4 * tile), __ldg(masks[1] + 4 * tile)};
            }
            multiply_tile<resident>(arguments, base, control, active, ring, products);
            float2 largest{};
            if (active) {
                const auto* penalties =
                    reinterpret_cast<const float*>(shared + layout.penalties + ring.stage * penalty_bytes);
                if constexpr (extra == Extra::masks) {
                    largest = least_admitted(products, factor, penalties, word);
                } else {
                    largest = make_scores(products, factor, penalties);
                }
                if constexpr (extra == Extra::bytes) largest = add_tile_bytes(products, arguments.added, slot, tile);
            }
            release<resident>(address_of(control.empty[ring.stage]));
            ring.advance(arguments.stages);
            if (tile >= unit.end || !active) continue;
            if constexpr (maxima) {
                float* out =
                    arguments.out.maxima + std::size_t{slot} * arguments.out.maxima_width + 4 * tile + threadIdx.x % 4;
                out[0] = largest.x;
                out[std::size_t{8} * arguments.out.maxima_width] = largest.y;
            } else if (__any_sync(~0U, largest.x > threshold.x || largest.y > threshold.y)) {
                const std::uint32_t position = (tile - unit.begin) * tile_rows;
                emit_above(products, threshold, [&](bool hit, std::uint32_t second, std::uint32_t column, float score) {
                    if (list.count > list_full) list.give_out(arguments, unit);
                    list.add(hit, {__float_as_uint(score), (query + 8 * second) << 24 | (position + column)});
                });
            }
        }
        if constexpr (resident) {
            release<true>(address_of(control.queries_empty));
            query_phase ^= 1;
        }
        if constexpr (!maxima) list.give_out(arguments, unit);
    }
}

template <bool resident>
__device__ void start_barriers(const TileArguments& arguments, Control& control)
{
    if (threadIdx.x == 0) {
        const unsigned releases = resident ? consumer_warps : cluster_blocks * consumer_warps;
        for (std::uint32_t stage = 0; stage < arguments.stages; ++stage) {
            hopper::barrier_init(address_of(control.full[stage]), 1);
            hopper::barrier_init(address_of(control.empty[stage]), releases);
        }
        hopper::barrier_init(address_of(control.queries_full), 1);
        hopper::barrier_init(address_of(control.queries_empty), consumer_warps);
        hopper::barriers_visible();
    }
    __syncthreads();
    if constexpr (!resident) hopper::cluster_sync();
}

#endif

template <bool maxima, bool resident, Extra extra>
__global__ __launch_bounds__(block_threads, 1) void warp_group_tiles(const __grid_constant__ CUtensorMap query_map,
                                                                     const __grid_constant__ CUtensorMap row_map,
                                                                     const AllArguments<extra> arguments)
{
#if PGWARP_WARPGROUP
    extern __shared__ __align__(1024) unsigned char shared[];
    const Layout<resident> layout(arguments.stages, arguments.dimension_blocks);
    auto& control = *reinterpret_cast<Control*>(shared + layout.control);
    start_barriers<resident>(arguments, control);
    wait_for_kernel_before();
    if (threadIdx.x >= consumer_threads) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (threadIdx.x == consumer_threads) produce<resident>(arguments, &query_map, &row_map, shared, control);
    } else {
        // Four times 112 and once 32 are the 96 registers a thread that the block has begun with.
        asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
        consume<maxima, resident, extra>(arguments, shared, control);
    }
    // A block stays while the other block of the cluster may still access its shared memory.
    if constexpr (!resident) {
        __syncwarp();
        hopper::cluster_sync();
    }
#else
    (void)query_map;
    (void)row_map;
    (void)arguments;
#endif
}

using EncodeTensorMap = decltype(&cuTensorMapEncodeTiled);

EncodeTensorMap encode_tensor_map()
{
    static const EncodeTensorMap function = [] {
        void* entry = nullptr;
        cudaDriverEntryPointQueryResult found{};
        check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found),
              "finding cuTensorMapEncodeTiled");
        if (found != cudaDriverEntryPointSuccess) throw CudaError(cudaErrorNotSupported, "tensor maps");
        return reinterpret_cast<EncodeTensorMap>(entry);
    }();
    return function;
}

// Boxes of 128 rows of one dimension block.
CUtensorMap map_of(const __half* matrix, std::uint32_t rows, std::uint32_t dimensions)
{
    CUtensorMap map;
    const cuuint64_t shape[2] = {dimensions, rows};
    const cuuint64_t stride[1] = {std::uint64_t{dimensions} * 2};
    const cuuint32_t box[2] = {block_halves, 128};
    const cuuint32_t steps[2] = {1, 1};
    const CUresult result =
        encode_tensor_map()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<__half*>(matrix), shape, stride, box,
                            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) throw CudaError(cudaErrorInvalidValue, "making a tensor map");
    return map;
}

// The number of pieces of the tiles with which the last wave of units is nearly full.
std::uint32_t choose_splits(std::uint32_t tiles, std::uint32_t query_tiles, std::uint32_t workers,
                            std::uint32_t least_tiles)
{
    const std::uint32_t most = std::clamp(tiles / least_tiles, 1U, std::max(1U, 16 * workers / query_tiles + 1));
    const std::uint32_t needed = std::max(1U, std::min(tiles, workers / query_tiles));
    std::uint32_t best = needed;
    double best_efficiency = 0;
    for (std::uint32_t splits = 1; splits <= std::max(most, needed); ++splits) {
        const std::uint32_t units = query_tiles * splits;
        const std::uint32_t waves = (units + workers - 1) / workers;
        const double longest = static_cast<double>((tiles + splits - 1) / splits) * waves * workers;
        const double efficiency = static_cast<double>(tiles) * query_tiles / longest;
        if (efficiency > best_efficiency + 0.003) {
            best = splits;
            best_efficiency = efficiency;
        }
    }
    return best;
}

// The stages that fit into a block's shared memory; 0 where not even the rest fits.
template <bool resident>
std::uint32_t stages_for(const Context& context, std::uint32_t dimension_blocks)
{
    const std::size_t fixed = Layout<resident>(0, dimension_blocks).bytes;
    const std::size_t room = context.shared_bytes_per_block();
    if (room <= fixed) return 0;
    const std::size_t stages = (room - fixed) / (Layout<resident>::stage_bytes + penalty_bytes);
    return static_cast<std::uint32_t>(std::min<std::size_t>(largest_stages, stages));
}

struct GivenArguments : TileArguments {
    AddedBytes added;
    RowMasks masks;
};

template <bool maxima, bool resident, Extra extra>
void launch(Context& context, const CUtensorMap& query_map, const CUtensorMap& row_map, const GivenArguments& given,
            cudaStream_t stream)
{
    AllArguments<extra> arguments{};
    static_cast<TileArguments&>(arguments) = given;
    if constexpr (extra == Extra::bytes) arguments.added = given.added;
    if constexpr (extra == Extra::masks) arguments.masks = given.masks;
    const auto kernel = warp_group_tiles<maxima, resident, extra>;
    arguments.stages = stages_for<resident>(context, arguments.dimension_blocks);
    const Layout<resident> layout(arguments.stages, arguments.dimension_blocks);
    allow_shared_memory(kernel);
    const auto blocks = static_cast<unsigned>(context.multiprocessors()) / (resident ? 1 : 2) * (resident ? 1 : 2);
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = block_threads;
    config.dynamicSmemBytes = layout.bytes;
    config.stream = stream;
    cudaLaunchAttribute attributes[2]{};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {resident ? 1 : cluster_blocks, 1, 1};
    attributes[1] = early_launch();
    config.attrs = attributes;
    config.numAttrs = 2;
    check(cudaLaunchKernelEx(&config, kernel, query_map, row_map, arguments), "warp-group tiles");
    check_launch("warp-group tiles");
}

using Launch = decltype(&launch<false, true, Extra::none>);

Launch launch_for(const ProposalJob& job)
{
    const bool maxima = job.out.maxima != nullptr;
    const bool resident = job.rows->padded_dimensions <= resident_dimensions;
    if (job.masks.words != nullptr)
        return resident ? launch<true, true, Extra::masks> : launch<true, false, Extra::masks>;
    if (job.added.values != nullptr)
        return maxima ? launch<true, true, Extra::bytes> : launch<false, true, Extra::bytes>;
    if (resident) return maxima ? launch<true, true, Extra::none> : launch<false, true, Extra::none>;
    return maxima ? launch<true, false, Extra::none> : launch<false, false, Extra::none>;
}

}  // namespace

bool warp_groups_available(Context& context, std::uint32_t padded_dimensions)
{
    if (!context.has_warp_group_matrix()) return false;
    // A consumer releases a stage once the next one has arrived.
    constexpr std::uint32_t fewest_stages = 2;
    const std::uint32_t blocks = padded_dimensions / block_halves;
    const std::uint32_t stages = padded_dimensions <= resident_dimensions ? stages_for<true>(context, blocks)
                                                                          : stages_for<false>(context, blocks);
    if (stages < fewest_stages) return false;
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, warp_group_tiles<false, true, Extra::none>), "asking for the tile kernel");
    // Built for sm_90a, the kernel has a body; built for less, it is empty.
    return attributes.binaryVersion == 90 && attributes.numRegs > 32;
}

void propose_by_warp_groups(Context& context, const ProposalJob& job, cudaStream_t stream)
{
    // Multiply-adds that take less than 2 ms: by an estimate where masks are read.
    const double launch_products = job.masks.words != nullptr ? 0.2e12 : 0.45e12;
    const std::uint32_t dimensions = job.rows->padded_dimensions;
    const bool resident = dimensions <= resident_dimensions;
    const CUtensorMap query_map = map_of(job.queries.halves, job.queries.padded, dimensions);
    // Behind the last row that is kept, copies bring zeros.
    const auto kept = static_cast<std::uint32_t>(job.rows->halves.size() / dimensions);
    const CUtensorMap row_map = map_of(job.rows->halves.data(), kept, dimensions);
    GivenArguments arguments{};
    arguments.out = job.out;
    arguments.penalties = job.penalties;
    arguments.factors = job.queries.factors;
    arguments.dimension_blocks = dimensions / block_halves;
    arguments.added = job.added;
    arguments.masks = job.masks;
    arguments.queries = job.queries.count;
    arguments.query_tiles = job.queries.padded / tile_queries;
    const std::uint32_t workers = static_cast<std::uint32_t>(context.multiprocessors()) / (resident ? 1 : 2);
    // Query tiles whose halves fit into a good part of the L2 beside the rows.
    arguments.query_group =
        std::clamp((std::uint32_t{12} << 20) / (tile_queries * dimensions * 2), 1U, arguments.query_tiles);
    const std::uint32_t end = (job.range.end + tile_rows - 1) / tile_rows;
    const auto launch_tiles = static_cast<std::uint32_t>(
        std::max(1.0, launch_products / (double{1} * job.queries.padded * dimensions * tile_rows)));
    const std::uint32_t all = end - job.range.begin / tile_rows;
    const std::uint32_t launches = (all + launch_tiles - 1) / launch_tiles;
    for (std::uint32_t i = 0; i < launches; ++i) {
        const auto from = static_cast<std::uint32_t>(std::uint64_t{all} * i / launches);
        const auto to = static_cast<std::uint32_t>(std::uint64_t{all} * (i + 1) / launches);
        arguments.first_tile = job.range.begin / tile_rows + from;
        arguments.tiles = to - from;
        arguments.splits = choose_splits(arguments.tiles, arguments.query_tiles, workers, resident ? 32 : 8);
        if (job.added.values != nullptr) arguments.added.values = job.added.values + std::size_t{from} * tile_rows;
        if (job.masks.words != nullptr) arguments.masks.words = job.masks.words + std::size_t{from} * 4;
        if (job.out.maxima != nullptr) arguments.out.maxima = job.out.maxima + std::size_t{from} * 4;
        launch_for(job)(context, query_map, row_map, arguments, stream);
    }
}

}  // namespace pgwarp::cuda
