// Assignment by warp-group matrix instructions. One warp feeds, two warp groups of 128 threads compute: each owns 128
// of the 256 rows of a tile and goes through all centroids, 128 at a time, so that the argmin of one group overlaps the
// products of the other. Rows stay in shared memory while they fit (two tiles where these are narrow, so that the next
// tile is loaded in time); centroids stream through a ring.
#include <algorithm>

#include "cluster/argmin_epilogue.cuh"
#include "cluster/assign_kernels.h"
#include "device/error.h"
#include "device/hopper.cuh"
#include "device/shared_memory.h"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned row_chunk_bytes = row_tile * chunk_width * sizeof(__half);            // 32 KiB
constexpr unsigned centroid_chunk_bytes = centroid_tile * chunk_width * sizeof(__half);  // 16 KiB
[[maybe_unused]] constexpr unsigned block_bytes = 64 * chunk_width * sizeof(__half);
constexpr unsigned norm_bytes = centroid_tile * sizeof(float);
constexpr unsigned shared_limit = 225 * 1024;
constexpr int threads = 384;
constexpr int most_stages = 8;
[[maybe_unused]] constexpr int consumer_warps = 8;

// The division of shared memory.
struct Plan {
    bool resident;  // rows stay; otherwise their chunks stream with the centroids'
    int row_buffers;
    int stages;
    unsigned row_bytes;  // of one buffer
    unsigned stage_bytes;
    unsigned bytes() const { return 1024 + row_buffers * row_bytes + stages * (stage_bytes + norm_bytes) + 256; }
};

Plan make_plan(std::size_t chunks, int parts)
{
    Plan plan{};
    plan.resident = rows_stay(chunks, parts == 2);
    plan.stage_bytes = centroid_chunk_bytes + (plan.resident ? 0 : row_chunk_bytes);
    plan.row_buffers = !plan.resident ? 0 : chunks * parts <= 2 ? 2 : 1;
    plan.row_bytes = plan.resident ? static_cast<unsigned>(chunks * parts) * row_chunk_bytes : 0;
    const unsigned left = shared_limit - plan.row_buffers * plan.row_bytes;
    plan.stages = static_cast<int>(std::min<unsigned>(most_stages, left / (plan.stage_bytes + norm_bytes)));
    return plan;
}

struct Arguments {
    AssignTask task;
    Plan plan;
    int row_tiles;
};

#if PGWARP_WARPGROUP

using namespace hopper;

// Addresses in shared memory: rows, stages, norms and barriers.
struct Shared {
    unsigned rows;
    unsigned stages;
    const float* norms;  // generic address, of stage 0
    unsigned norms_address;
    unsigned full;
    unsigned empty;
    unsigned rows_full;
    unsigned rows_empty;

    __device__ Shared(unsigned char* memory, const Plan& plan)
    {
        unsigned char* base = memory + (1024 - shared_address(memory) % 1024) % 1024;
        rows = shared_address(base);
        stages = rows + plan.row_buffers * plan.row_bytes;
        const unsigned norms_offset = plan.row_buffers * plan.row_bytes + plan.stages * plan.stage_bytes;
        norms = reinterpret_cast<const float*>(base + norms_offset);
        norms_address = rows + norms_offset;
        full = norms_address + plan.stages * norm_bytes;
        empty = full + 8 * most_stages;
        rows_full = empty + 8 * most_stages;
        rows_empty = rows_full + 16;
    }
};

// A place in a ring and the parity of its barrier.
struct Ring {
    int at = 0;
    unsigned phase = 0;
    __device__ void advance(int size)
    {
        if (++at == size) {
            at = 0;
            phase ^= 1;
        }
    }
};

// Pass 0 multiplies high by high, pass 1 low rows by high centroids, pass 2 high rows by low centroids.
template <bool exact>
constexpr int passes = exact ? 3 : 1;
template <bool exact>
constexpr int parts = exact ? 2 : 1;

template <bool exact, bool resident>
__device__ void feed(const Arguments& arguments, const Shared& shared)
{
    const AssignTask& task = arguments.task;
    const Plan& plan = arguments.plan;
    const int chunks = static_cast<int>(task.chunks);
    const auto* row_bytes = reinterpret_cast<const unsigned char*>(task.rows.tiles);
    const auto* centroid_bytes = reinterpret_cast<const unsigned char*>(task.centroids.tiles);
    const int begin = takes_parts(exact, resident) ? task.first_tile : 0;
    const int end = takes_parts(exact, resident) ? task.end_tile : task.centroids.tile_count;
    Ring stage;
    Ring buffer;
    for (int tile = blockIdx.x; tile < arguments.row_tiles; tile += gridDim.x) {
        const unsigned char* rows =
            row_bytes + std::size_t{static_cast<unsigned>(tile)} * parts<exact> * chunks * row_chunk_bytes;
        if (resident) {
            barrier_wait(shared.rows_empty + 8 * buffer.at, buffer.phase ^ 1);
            barrier_expect(shared.rows_full + 8 * buffer.at, plan.row_bytes);
            for (unsigned at = 0; at < plan.row_bytes; at += row_chunk_bytes)
                load_bytes(shared.rows + buffer.at * plan.row_bytes + at, rows + at, row_chunk_bytes,
                           shared.rows_full + 8 * buffer.at);
            buffer.advance(plan.row_buffers);
        }
        for (int group = begin; group < end; ++group) {
            const unsigned char* centroids = centroid_bytes + std::size_t{static_cast<unsigned>(group)} * parts<exact> *
                                                                  chunks * centroid_chunk_bytes;
            for (int v = 0; v < passes<exact> * chunks; ++v) {
                const int pass = v / chunks;
                const int chunk = v % chunks;
                const bool last = v + 1 == passes<exact> * chunks;
                const unsigned barrier = shared.full + 8 * stage.at;
                const unsigned place = shared.stages + stage.at * plan.stage_bytes;
                barrier_wait(shared.empty + 8 * stage.at, stage.phase ^ 1);
                barrier_expect(barrier, plan.stage_bytes + (last ? norm_bytes : 0));
                load_bytes(place, centroids + ((pass == 2 ? chunks : 0) + chunk) * centroid_chunk_bytes,
                           centroid_chunk_bytes, barrier);
                if (!resident)
                    load_bytes(place + centroid_chunk_bytes,
                               rows + ((pass == 1 ? chunks : 0) + chunk) * row_chunk_bytes, row_chunk_bytes, barrier);
                if (last)
                    load_bytes(shared.norms_address + stage.at * norm_bytes,
                               task.centroids.half_norms + group * centroid_tile, norm_bytes, barrier);
                stage.advance(plan.stages);
            }
        }
    }
}

template <bool exact, bool resident>
__device__ void compute(const Arguments& arguments, const Shared& shared)
{
    const AssignTask& task = arguments.task;
    const Plan& plan = arguments.plan;
    const int chunks = static_cast<int>(task.chunks);
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const unsigned own_blocks = (warp / 4) * 2 * block_bytes;
    const int own_row = (warp / 4) * 128 + (warp % 4) * 16 + lane / 4;
    const int begin = takes_parts(exact, resident) ? task.first_tile : 0;
    const int end = takes_parts(exact, resident) ? task.end_tile : task.centroids.tile_count;
    Ring stage;
    Ring buffer;
    unsigned differ = 0;
    for (int tile = blockIdx.x; tile < arguments.row_tiles; tile += gridDim.x) {
        const std::size_t first_row = std::size_t{static_cast<unsigned>(tile)} * row_tile + own_row;
        float row_scale[2][2];
        RowBest<exact> best[2][2];
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            for (int r = 0; r < 2; ++r) {
                row_scale[b][r] = task.rows.scale[first_row + b * 64 + r * 8];
                best[b][r].clear();
            }
        }
        if (resident) barrier_wait(shared.rows_full + 8 * buffer.at, buffer.phase);
        for (int group = begin; group < end; ++group) {
            float sums[2][64];
            unsigned previous = 0;
            int last_stage = 0;
            for (int v = 0; v < passes<exact> * chunks; ++v) {
                const int pass = v / chunks;
                const int chunk = v % chunks;
                const unsigned place = shared.stages + stage.at * plan.stage_bytes;
                const unsigned rows = resident ? shared.rows + buffer.at * plan.row_bytes +
                                                     ((pass == 1 ? chunks : 0) + chunk) * row_chunk_bytes
                                               : place + centroid_chunk_bytes;
                barrier_wait(shared.full + 8 * stage.at, stage.phase);
                const std::uint64_t centroid_part = matrix_descriptor(place);
                matrix_fence();
#pragma unroll
                for (int b = 0; b < 2; ++b) {
                    const std::uint64_t row_part = matrix_descriptor(rows + own_blocks + b * block_bytes);
#pragma unroll
                    for (int k = 0; k < chunk_width / 16; ++k)
                        multiply(sums[b], row_part + 2 * k, centroid_part + 2 * k, v + k != 0);
                }
                matrix_commit();
                if (v > 0) {
                    matrix_wait<1>();
                    if (lane == 0) barrier_arrive(previous);
                }
                previous = shared.empty + 8 * stage.at;
                last_stage = stage.at;
                stage.advance(plan.stages);
            }
            matrix_wait<0>();
            score_tile<exact, 2>(sums, shared.norms + last_stage * centroid_tile, row_scale, group, best);
            __syncwarp();
            if (lane == 0) barrier_arrive(previous);
        }
        if (resident) {
            if (lane == 0) barrier_arrive(shared.rows_empty + 8 * buffer.at);
            buffer.advance(plan.row_buffers);
        }
#pragma unroll
        for (int b = 0; b < 2; ++b) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const TwoBest found = merge_quad<exact>(best[b][r]);
                const std::size_t row = first_row + b * 64 + r * 8;
                if (lane % 4 == 0 && row < task.rows.count)
                    differ += write_row<exact, takes_parts(exact, resident)>(found, row, task);
            }
        }
    }
    if constexpr (!exact) {
        differ = __reduce_add_sync(~0U, differ);
        if (lane == 0 && differ != 0) atomicAdd(task.changed, differ);
    }
}

#endif

template <bool exact, bool resident>
__global__ __launch_bounds__(threads, 1) void assign_warpgroup_kernel(const __grid_constant__ Arguments arguments)
{
#if PGWARP_WARPGROUP
    extern __shared__ unsigned char memory[];
    const Shared shared(memory, arguments.plan);
    if (threadIdx.x == 0) {
        for (int s = 0; s < arguments.plan.stages; ++s) {
            barrier_init(shared.full + 8 * s, 1);
            barrier_init(shared.empty + 8 * s, consumer_warps);
        }
        for (int b = 0; b < 2; ++b) {
            barrier_init(shared.rows_full + 8 * b, 1);
            barrier_init(shared.rows_empty + 8 * b, consumer_warps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32 * consumer_warps) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        compute<exact, resident>(arguments, shared);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 32 * consumer_warps) feed<exact, resident>(arguments, shared);
    }
#endif
}

template <bool exact, bool resident>
void launch(const Arguments& arguments, int multiprocessors, cudaStream_t stream)
{
    const auto kernel = assign_warpgroup_kernel<exact, resident>;
    const unsigned bytes = arguments.plan.bytes();
    allow_shared_memory(kernel);
    kernel<<<static_cast<unsigned>(std::min(multiprocessors, arguments.row_tiles)), threads, bytes, stream>>>(
        arguments);
    check_launch("assign rows");
}

}  // namespace

void assign_warpgroup(const AssignTask& task, bool exact, int multiprocessors, cudaStream_t stream)
{
    Arguments arguments{task, make_plan(task.chunks, exact ? 2 : 1),
                        static_cast<int>((task.rows.count + row_tile - 1) / row_tile)};
    if (exact) {
        arguments.plan.resident ? launch<true, true>(arguments, multiprocessors, stream)
                                : launch<true, false>(arguments, multiprocessors, stream);
    } else {
        arguments.plan.resident ? launch<false, true>(arguments, multiprocessors, stream)
                                : launch<false, false>(arguments, multiprocessors, stream);
    }
}

}  // namespace pgwarp::cuda
