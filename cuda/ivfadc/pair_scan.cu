#include "ivfadc/pair_scan.h"

#include <algorithm>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "ivfadc/half_dot.cuh"
#include "select/order_bits.h"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 256;
constexpr int half_threads = 128;
constexpr int half_blocks = 6;                            // of a multiprocessor: leaves registers for many loads
constexpr std::uint32_t half_groups = half_threads / 32;  // of a block
constexpr int warps = threads / 32;
constexpr int byte_row_lanes = 8;
constexpr int byte_rows_at_once = 16;      // of a warp
constexpr std::uint32_t byte_slots = 256;  // of a block
constexpr std::uint32_t most_table_bytes = 160 << 10;

// The slots [first, first + count) of a query that a block scans, in groups of 32 that may belong to different lists.
struct SlotStretch {
    std::uint32_t query;
    std::uint32_t first;
    std::uint32_t count;
    const std::uint32_t* positions;  // of the groups
    const float* constants;
    float* out;
    std::uint32_t* minima;  // of the groups, or null
};

// Finds the stretch of this block. False where the query has fewer slots.
__device__ bool find_stretch(const ScanWork& work, const DenseScores& out, std::uint32_t slots, SlotStretch& found)
{
    found.query = blockIdx.y;
    found.first = blockIdx.x * slots;
    const std::uint32_t all = work.probes.slots[found.query];
    if (found.first >= all) return false;
    found.count = min(slots, all - found.first);
    const std::size_t group = found.query * work.probes.group_stride + found.first / group_rows;
    found.positions = work.probes.group_position + group;
    found.constants = work.probes.group_constant + group;
    found.out = out.scores + found.query * out.stride + found.first;
    found.minima = out.minima != nullptr ? out.minima + (found.query * out.stride + found.first) / group_rows : nullptr;
    return true;
}

__device__ float final_score(const MirrorView& mirror, const ScanWork& work, std::uint32_t position, float constant,
                             float product)
{
    const float score = mirror.row_terms[position] - product + constant;
    if (work.dead != nullptr && ((work.dead[position / 32] >> (position % 32)) & 1U) != 0) return INFINITY;
    return score;
}

// Writes a query of the batch, times a factor, with zeros up to the stride.
__device__ void load_query(const MirrorView& mirror, const QueryView& queries, std::uint32_t query, float factor,
                           float* to)
{
    const float* moved = queries.moved + static_cast<std::size_t>(query) * mirror.dimensions;
    for (std::uint32_t d = threadIdx.x; d < mirror.stride; d += half_threads) {
        to[d] = d < mirror.dimensions ? moved[d] * factor : 0;
    }
}

// A warp for each group.
__global__ __launch_bounds__(half_threads, half_blocks) void scan_half_pairs(MirrorView mirror, QueryView queries,
                                                                             ScanWork work, DenseScores out,
                                                                             float factor)
{
    extern __shared__ float4 query_pieces[];
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t group = blockIdx.x * half_groups + threadIdx.x / 32;
    const std::size_t at = query * work.probes.group_stride + group;
    wait_for_kernel_before();
    let_next_start();
    // The loads beyond the last group are valid, and their results are not used.
    const bool inside = group < work.probes.group_stride;
    const std::uint32_t slots = work.probes.slots[query];
    std::uint32_t position = inside ? work.probes.group_position[at] : 0;
    const float constant = inside ? work.probes.group_constant[at] : 0;
    if (blockIdx.x * half_groups * group_rows >= slots) return;
    load_query(mirror, queries, query, factor, reinterpret_cast<float*>(query_pieces));
    __syncthreads();
    if (group * group_rows >= slots) return;
    const __half* rows = mirror.half.rows + static_cast<std::size_t>(position) * mirror.stride;
    const std::uint32_t row = dot_row(group_rows / 2);
    position += row;
    const float term = mirror.row_terms[position];
    const std::uint32_t dead = work.dead != nullptr ? work.dead[position / 32] >> (position % 32) & 1U : 0;
    const float product = dot_rows<group_rows / 2, 8>(rows, mirror.stride, query_pieces);
    const float score = dead != 0 ? INFINITY : term - product + constant;
    const std::size_t slot = query * out.stride + group * group_rows;
    out.scores[slot + row] = score;
    if (out.minima == nullptr) return;
    const std::uint32_t least = warp_least(score_key(score));
    if (threadIdx.x % 32 == 0) out.minima[slot / group_rows] = least;
}

// Adds the products of 16 bytes with the query's elements, which lie in four rows of `pieces` quadruples.
__device__ float dot_bytes(const uint4& bytes, const float4* query, std::uint32_t pieces, float sum)
{
    const std::uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    // The float with the bits 0x4B000000 + byte is 2^23 + byte.
    constexpr float offset = 8388608 + 128;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float4 q = query[i * pieces];
        sum = fmaf(__uint_as_float(__byte_perm(words[i], 0x4B000000U, 0x7440U)) - offset, q.x, sum);
        sum = fmaf(__uint_as_float(__byte_perm(words[i], 0x4B000000U, 0x7441U)) - offset, q.y, sum);
        sum = fmaf(__uint_as_float(__byte_perm(words[i], 0x4B000000U, 0x7442U)) - offset, q.z, sum);
        sum = fmaf(__uint_as_float(__byte_perm(words[i], 0x4B000000U, 0x7443U)) - offset, q.w, sum);
    }
    return sum;
}

// Eight lanes share a row.
__global__ __launch_bounds__(threads) void scan_byte_pairs(MirrorView mirror, QueryView queries, ScanWork work,
                                                           DenseScores out, float factor)
{
    extern __shared__ float4 query_pieces[];
    __shared__ std::uint32_t least[byte_slots / group_rows];
    SlotStretch stretch;
    if (!find_stretch(work, out, byte_slots, stretch)) return;
    if (threadIdx.x < byte_slots / group_rows) least[threadIdx.x] = no_key;
    const std::uint32_t pieces = mirror.byte.stride / 16;
    auto* query = reinterpret_cast<float*>(query_pieces);
    for (std::uint32_t d = threadIdx.x; d < mirror.byte.stride; d += threads) {
        const float* moved = queries.moved + static_cast<std::size_t>(stretch.query) * mirror.dimensions;
        const std::uint32_t place = byte_place(d);
        query[(place % 16 / 4 * pieces + place / 16) * 4 + place % 4] = d < mirror.dimensions ? moved[d] * factor : 0;
    }
    __syncthreads();
    constexpr int apart = 32 / byte_row_lanes;       // rows that a warp reads with one load
    constexpr int each = byte_rows_at_once / apart;  // rows of a lane
    const std::uint32_t lane = threadIdx.x % byte_row_lanes;
    const std::uint32_t lane_row = threadIdx.x % 32 / byte_row_lanes;
    for (std::uint32_t base = threadIdx.x / 32 * byte_rows_at_once; base < stretch.count;
         base += warps * byte_rows_at_once) {
        float sums[each] = {};
        const std::uint32_t group = base / group_rows;
        const std::uint32_t position = stretch.positions[group] + base % group_rows + lane_row;
        const std::uint8_t* first = mirror.byte.rows + static_cast<std::size_t>(position) * mirror.byte.stride;
        for (std::uint32_t piece = lane; piece < pieces; piece += byte_row_lanes) {
            uint4 bytes[each];
#pragma unroll
            for (int i = 0; i < each; ++i) {
                bytes[i] = *reinterpret_cast<const uint4*>(
                    first + static_cast<std::size_t>(i) * apart * mirror.byte.stride + piece * 16);
            }
#pragma unroll
            for (int i = 0; i < each; ++i) sums[i] = dot_bytes(bytes[i], query_pieces + piece, pieces, sums[i]);
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
            for (int step = byte_row_lanes / 2; step > 0; step /= 2) {
                sums[i] += __shfl_xor_sync(0xffffffffU, sums[i], step, byte_row_lanes);
            }
            if (lane != 0) continue;
            const std::uint32_t row = position + i * apart;
            const float product = sums[i] * mirror.byte.scales[row];
            const float score = final_score(mirror, work, row, stretch.constants[group], product);
            stretch.out[base + lane_row + i * apart] = score;
            if (stretch.minima != nullptr) atomicMin(&least[group], score_key(score));
        }
    }
    if (stretch.minima == nullptr) return;
    __syncthreads();
    if (threadIdx.x < stretch.count / group_rows) stretch.minima[threadIdx.x] = least[threadIdx.x];
}

// table[query][part][word] = factor * (part of the query . codeword).
__global__ __launch_bounds__(threads) void make_tables(MirrorView mirror, QueryView queries, float factor,
                                                       float* tables)
{
    const std::uint32_t part = blockIdx.x;
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t width = mirror.dimensions / mirror.code.subquantizers;
    const std::uint32_t wider = mirror.dimensions % mirror.code.subquantizers;
    const std::uint32_t begin = part * width + min(part, wider);
    const std::uint32_t span = width + (part < wider ? 1 : 0);
    const float* moved = queries.moved + static_cast<std::size_t>(query) * mirror.dimensions + begin;
    const float* words =
        mirror.code.codebooks + static_cast<std::size_t>(begin) * 256 + static_cast<std::size_t>(threadIdx.x) * span;
    float sum = 0;
    for (std::uint32_t d = 0; d < span; ++d) sum = fmaf(moved[d], words[d], sum);
    tables[(static_cast<std::size_t>(query) * gridDim.x + part) * 256 + threadIdx.x] = sum * factor;
}

__device__ float sum_codes(const uint4& codes, const float* table, std::uint32_t parts, float sum)
{
    const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const std::uint32_t word = (words[i / 4] >> (8 * (i % 4))) & 255U;
        if (i < static_cast<int>(parts)) sum += table[i * 256 + word];
    }
    return sum;
}

// One row for each thread, one group for each warp.
__global__ __launch_bounds__(threads) void scan_code_pairs(MirrorView mirror, ScanWork work, const float* tables,
                                                           bool in_shared, DenseScores out, std::uint32_t slots)
{
    extern __shared__ float4 shared_table[];
    SlotStretch stretch;
    if (!find_stretch(work, out, slots, stretch)) return;
    const std::uint32_t floats = mirror.code.subquantizers * 256;
    const float* table = tables + static_cast<std::size_t>(stretch.query) * floats;
    if (in_shared) {
        const auto* from = reinterpret_cast<const float4*>(table);
        for (std::uint32_t i = threadIdx.x; i < floats / 4; i += threads) shared_table[i] = from[i];
        table = reinterpret_cast<const float*>(shared_table);
        __syncthreads();
    }
    for (std::uint32_t slot = threadIdx.x; slot < stretch.count; slot += threads) {
        const std::uint32_t group = slot / group_rows;
        const std::uint32_t position = stretch.positions[group] + slot % group_rows;
        const auto* codes =
            reinterpret_cast<const uint4*>(mirror.code.codes + code_offset(position, 0, mirror.code.code_groups));
        float sum = 0;
        for (std::uint32_t part = 0; part < mirror.code.code_groups; ++part) {
            sum = sum_codes(codes[static_cast<std::size_t>(part) * group_rows], table + part * group_codes * 256,
                            mirror.code.subquantizers - part * group_codes, sum);
        }
        const float score = final_score(mirror, work, position, stretch.constants[group], sum);
        stretch.out[slot] = score;
        const std::uint32_t least = warp_least(score_key(score));
        if (stretch.minima != nullptr && slot % group_rows == 0) stretch.minima[group] = least;
    }
}

}  // namespace

std::size_t pair_table_floats(const MirrorView& mirror, std::size_t queries)
{
    return mirror.scans_codes ? queries * mirror.code.subquantizers * 256 : 0;
}

void scan_pairs(const MirrorView& mirror, const QueryView& queries, std::uint32_t count, const ScanWork& work,
                float* tables, const DenseScores& out, cudaStream_t stream)
{
    if (count == 0 || work.most_slots == 0) return;
    const float factor = mirror.metric == Metric::l2 ? 2.0F : 1.0F;
    if (mirror.scans_bytes) {
        const std::size_t bytes = mirror.byte.stride * sizeof(float);
        allow_shared_memory(scan_byte_pairs);
        const dim3 grid((work.most_slots + byte_slots - 1) / byte_slots, count);
        scan_byte_pairs<<<grid, threads, bytes, stream>>>(mirror, queries, work, out, factor);
        check_launch("scan of pairs");
        return;
    }
    if (!mirror.scans_codes) {
        const std::size_t bytes = mirror.stride * sizeof(float);
        allow_shared_memory(scan_half_pairs);
        constexpr std::uint32_t slots = half_groups * group_rows;
        const dim3 grid((work.most_slots + slots - 1) / slots, count);
        launch_chained(count <= chained_queries, scan_half_pairs, grid, half_threads, bytes, stream, "scan of pairs",
                       mirror, queries, work, out, factor);
        return;
    }
    make_tables<<<dim3(mirror.code.subquantizers, count), threads, 0, stream>>>(mirror, queries, factor, tables);
    check_launch("look-up tables");
    const std::uint32_t slots = count * work.probes.probes <= 256 ? 256 : 1024;
    const std::uint32_t bytes = mirror.code.subquantizers * 1024;
    const bool in_shared = bytes <= std::min<std::uint32_t>(most_table_bytes, work.shared_bytes);
    allow_shared_memory(scan_code_pairs);
    const dim3 grid((work.most_slots + slots - 1) / slots, count);
    scan_code_pairs<<<grid, threads, in_shared ? bytes : 0, stream>>>(mirror, work, tables, in_shared, out, slots);
    check_launch("scan of pairs");
}

}  // namespace pgwarp::cuda::ivfadc
