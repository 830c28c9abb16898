#include "ivfadc/pair_scan.h"

#include <algorithm>

#include "device/error.h"
#include "ivfadc/shared_memory.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int row_lanes = 16;    // that share a row
constexpr int rows_at_once = 8;  // of a warp: their loads are under way together
constexpr int byte_row_lanes = 8;
constexpr int byte_rows_at_once = 16;
constexpr std::uint32_t most_table_bytes = 160 << 10;

struct PairStretch {
    std::uint32_t query;
    std::uint32_t position;  // of the first row
    std::uint32_t rows;      // a multiple of 32
    float constant;
    float* out;
};

// The stretch of this block; false where the list is shorter.
__device__ bool find_stretch(const MirrorView& mirror, const ScanWork& work, const DenseScores& out,
                             std::uint32_t stretch, PairStretch& found)
{
    const std::uint32_t pair = blockIdx.x;
    const std::uint32_t list = work.probes.list[pair];
    const std::uint32_t rows = whole_groups(mirror.list_length[list]);
    const std::uint32_t first = blockIdx.y * stretch;
    if (first >= rows) return false;
    found.query = pair / work.probes.probes;
    found.position = mirror.list_begin[list] + first;
    found.rows = min(stretch, rows - first);
    found.constant = work.probes.constant[pair];
    found.out = out.scores + found.query * out.stride + work.probes.slot[pair] + first;
    return true;
}

__device__ float final_score(const MirrorView& mirror, const ScanWork& work, const PairStretch& stretch,
                             std::uint32_t row, float product)
{
    const std::uint32_t position = stretch.position + row;
    const float score = mirror.row_terms[position] - product + stretch.constant;
    if (work.dead != nullptr && ((work.dead[position / 32] >> (position % 32)) & 1U) != 0) return INFINITY;
    return score;
}

__device__ float dot_piece(const uint4& halves, const float4& a, const float4& b, float sum)
{
    const float2 h0 = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
    const float2 h1 = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
    const float2 h2 = __half22float2(*reinterpret_cast<const __half2*>(&halves.z));
    const float2 h3 = __half22float2(*reinterpret_cast<const __half2*>(&halves.w));
    sum = fmaf(h0.x, a.x, sum);
    sum = fmaf(h0.y, a.y, sum);
    sum = fmaf(h1.x, a.z, sum);
    sum = fmaf(h1.y, a.w, sum);
    sum = fmaf(h2.x, b.x, sum);
    sum = fmaf(h2.y, b.y, sum);
    sum = fmaf(h3.x, b.z, sum);
    return fmaf(h3.y, b.w, sum);
}

__global__ __launch_bounds__(threads) void scan_half_pairs(MirrorView mirror, QueryView queries, ScanWork work,
                                                           DenseScores out, std::uint32_t rows_of_block, float factor)
{
    extern __shared__ float4 query_pieces[];
    PairStretch stretch;
    if (!find_stretch(mirror, work, out, rows_of_block, stretch)) return;
    auto* query = reinterpret_cast<float*>(query_pieces);
    for (std::uint32_t d = threadIdx.x; d < mirror.stride; d += threads) {
        const float* moved = queries.moved + static_cast<std::size_t>(stretch.query) * mirror.dimensions;
        query[d] = d < mirror.dimensions ? moved[d] * factor : 0;
    }
    __syncthreads();
    constexpr int each = rows_at_once * row_lanes / 32;  // rows of a lane
    const std::uint32_t lane = threadIdx.x % row_lanes;
    const std::uint32_t half_warp = threadIdx.x % 32 / row_lanes;
    for (std::uint32_t base = threadIdx.x / 32 * rows_at_once; base < stretch.rows; base += warps * rows_at_once) {
        float sums[each] = {};
        const __half* first =
            mirror.half.rows + static_cast<std::size_t>(stretch.position + base + half_warp) * mirror.stride;
        for (std::uint32_t piece = lane; piece * 8 < mirror.stride; piece += row_lanes) {
            uint4 halves[each];
#pragma unroll
            for (int i = 0; i < each; ++i) {
                halves[i] = *reinterpret_cast<const uint4*>(
                    first + static_cast<std::size_t>(i) * (32 / row_lanes) * mirror.stride + piece * 8);
            }
            const float4 a = query_pieces[piece * 2];
            const float4 b = query_pieces[piece * 2 + 1];
#pragma unroll
            for (int i = 0; i < each; ++i) sums[i] = dot_piece(halves[i], a, b, sums[i]);
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
            for (int step = row_lanes / 2; step > 0; step /= 2) {
                sums[i] += __shfl_xor_sync(0xffffffffU, sums[i], step, row_lanes);
            }
            const std::uint32_t row = base + half_warp + i * (32 / row_lanes);
            if (lane == 0) stretch.out[row] = final_score(mirror, work, stretch, row, sums[i]);
        }
    }
}

// Products of 16 bytes with the query's elements, which lie in four rows of `pieces` quadruples.
__device__ float dot_bytes(const uint4& bytes, const float4* query, std::uint32_t pieces, float sum)
{
    const std::uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    // A byte under the exponent of 2^23 is the float 2^23 + byte.
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
                                                           DenseScores out, std::uint32_t rows_of_block, float factor)
{
    extern __shared__ float4 query_pieces[];
    PairStretch stretch;
    if (!find_stretch(mirror, work, out, rows_of_block, stretch)) return;
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
    const std::uint32_t group = threadIdx.x % 32 / byte_row_lanes;
    for (std::uint32_t base = threadIdx.x / 32 * byte_rows_at_once; base < stretch.rows;
         base += warps * byte_rows_at_once) {
        float sums[each] = {};
        const std::uint8_t* first =
            mirror.byte.rows + static_cast<std::size_t>(stretch.position + base + group) * mirror.byte.stride;
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
            const std::uint32_t row = base + group + i * apart;
            if (lane != 0) continue;
            const float product = sums[i] * mirror.byte.scales[stretch.position + row];
            stretch.out[row] = final_score(mirror, work, stretch, row, product);
        }
    }
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

// One row a thread.
__global__ __launch_bounds__(threads) void scan_code_pairs(MirrorView mirror, ScanWork work, const float* tables,
                                                           bool in_shared, DenseScores out, std::uint32_t rows_of_block)
{
    extern __shared__ float4 shared_table[];
    PairStretch stretch;
    if (!find_stretch(mirror, work, out, rows_of_block, stretch)) return;
    const std::uint32_t floats = mirror.code.subquantizers * 256;
    const float* table = tables + static_cast<std::size_t>(stretch.query) * floats;
    if (in_shared) {
        const auto* from = reinterpret_cast<const float4*>(table);
        for (std::uint32_t i = threadIdx.x; i < floats / 4; i += threads) shared_table[i] = from[i];
        table = reinterpret_cast<const float*>(shared_table);
        __syncthreads();
    }
    for (std::uint32_t row = threadIdx.x; row < stretch.rows; row += threads) {
        const auto* codes = reinterpret_cast<const uint4*>(
            mirror.code.codes + code_offset(stretch.position + row, 0, mirror.code.code_groups));
        float sum = 0;
        for (std::uint32_t group = 0; group < mirror.code.code_groups; ++group) {
            sum = sum_codes(codes[static_cast<std::size_t>(group) * group_rows], table + group * group_codes * 256,
                            mirror.code.subquantizers - group * group_codes, sum);
        }
        stretch.out[row] = final_score(mirror, work, stretch, row, sum);
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
    if (work.pairs == 0 || work.longest == 0) return;
    const float factor = mirror.metric == Metric::l2 ? 2.0F : 1.0F;
    if (mirror.scans_bytes) {
        const std::uint32_t rows = work.pairs <= 256 ? 128 : 256;
        const std::size_t bytes = mirror.byte.stride * sizeof(float);
        allow_shared_memory<scan_byte_pairs>(static_cast<std::uint32_t>(bytes));
        const dim3 grid(work.pairs, (work.longest + rows - 1) / rows);
        scan_byte_pairs<<<grid, threads, bytes, stream>>>(mirror, queries, work, out, rows, factor);
        check_launch("scan of pairs");
        return;
    }
    if (!mirror.scans_codes) {
        const std::uint32_t rows = work.pairs <= 256 ? 64 : 256;
        const std::size_t bytes = mirror.stride * sizeof(float);
        allow_shared_memory<scan_half_pairs>(static_cast<std::uint32_t>(bytes));
        const dim3 grid(work.pairs, (work.longest + rows - 1) / rows);
        scan_half_pairs<<<grid, threads, bytes, stream>>>(mirror, queries, work, out, rows, factor);
        check_launch("scan of pairs");
        return;
    }
    make_tables<<<dim3(mirror.code.subquantizers, count), threads, 0, stream>>>(mirror, queries, factor, tables);
    check_launch("look-up tables");
    const std::uint32_t rows = work.pairs <= 256 ? 256 : 1024;
    const std::uint32_t bytes = mirror.code.subquantizers * 1024;
    const bool in_shared = bytes <= most_table_bytes;
    allow_shared_memory<scan_code_pairs>(in_shared ? bytes : 0);
    const dim3 grid(work.pairs, (work.longest + rows - 1) / rows);
    scan_code_pairs<<<grid, threads, in_shared ? bytes : 0, stream>>>(mirror, work, tables, in_shared, out, rows);
    check_launch("scan of pairs");
}

}  // namespace pgwarp::cuda::ivfadc
