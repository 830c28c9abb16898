// Blocks of 8 warps compute tiles of 64 queries x 128 rows, 64 dimensions at a time; the tiles of an item stream
// through a ring in shared memory. What becomes of a score is the Output's.
#include "ivfadc/scan.h"

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "ivfadc/matrix_tile.cuh"
#include "ivfadc/order_key.cuh"
#include "ivfadc/probes.h"
#include "ivfadc/tile_rows.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 256;
constexpr int tile_rows = 128;
constexpr std::uint32_t query_tile_bytes = scan_queries * tile_depth * 2;
constexpr std::uint32_t row_tile_bytes = tile_rows * tile_depth * 2;
constexpr std::uint32_t term_bytes = tile_rows * sizeof(float);
constexpr std::uint32_t stage_bytes = query_tile_bytes + row_tile_bytes + term_bytes;
constexpr std::uint32_t most_codebook_bytes = 64 << 10;
constexpr int decode_threads = 256;
// Blocks end after about so many tiles, some 0.05 to 0.15 ms: those of more urgent streams wait for them. Where each
// block first loads the codebooks it takes a few times as many.
constexpr std::uint32_t block_tiles = 32;
constexpr std::uint32_t block_tiles_with_codebooks = 128;
constexpr std::uint32_t launch_tiles_most = 3U << 16;  // of a launch: one to two milliseconds
constexpr std::uint32_t fewest_blocks = 132 * 8;       // more than fit at once even out unequal items

// What the queries of an item need, by their place in the item.
struct ItemQueries {
    std::uint32_t query[scan_queries];
    std::uint32_t slot[scan_queries];
    float multiplier[scan_queries];
    float constant[scan_queries];
    float limit[scan_queries];
};

// Scores within their limits, gathered by a block over an item so that the queries' counts are raised once an item.
struct PassedScores {
    static constexpr std::uint32_t capacity = 1024;
    std::uint32_t count;
    std::uint32_t of_query[scan_queries];
    std::uint32_t begin[scan_queries];
    std::uint32_t places[capacity];  // place of the query in the item, later also the rank among its entries
    std::uint64_t entries[capacity];
};

constexpr std::uint32_t passed_bytes = (sizeof(PassedScores) + 127) / 128 * 128;

struct DenseOutput {
    static constexpr bool limited = false;
    DenseScores out;
    __device__ float limit_of(std::uint32_t) const { return 0; }
    __device__ void write(const ItemQueries& queries, int at, std::uint32_t list_row, float first, float second) const
    {
        float* to = out.scores + queries.query[at] * out.stride + queries.slot[at] + list_row;
        *reinterpret_cast<float2*>(to) = {first, second};
    }
    __device__ void write_minimum(const ItemQueries& queries, int at, std::uint32_t list_row, std::uint32_t key) const
    {
        const std::size_t slot = queries.query[at] * out.stride + queries.slot[at] + list_row;
        out.minima[slot / group_rows] = key;
    }
};

struct LimitedOutput {
    static constexpr bool limited = true;
    LimitedScores out;
    // A query of which too much has passed is lost already: of it, nothing more passes.
    __device__ float limit_of(std::uint32_t query) const
    {
        return __ldcg(out.counts + query) > out.capacity ? -INFINITY : out.limits[query];
    }
    __device__ void write(std::uint32_t query, std::uint32_t at, std::uint64_t entry) const
    {
        if (at < out.capacity) out.candidates[static_cast<std::size_t>(query) * out.capacity + at] = entry;
    }
    __device__ void keep(const ItemQueries& queries, std::uint32_t slot, int at, float score, std::uint32_t position,
                         PassedScores& passed) const
    {
        const std::uint64_t entry = static_cast<std::uint64_t>(order_key(score)) << 32 | position;
        if (slot < PassedScores::capacity) {
            passed.places[slot] = static_cast<std::uint32_t>(at);
            passed.entries[slot] = entry;
        } else {
            write(queries.query[at], atomicAdd(out.counts + queries.query[at], 1U), entry);
        }
    }
    // Called by all threads once the item's scores are in.
    __device__ void flush(const ItemQueries& queries, PassedScores& passed) const
    {
        __syncthreads();
        const std::uint32_t count = min(passed.count, PassedScores::capacity);
        if (count == 0) return;
        for (std::uint32_t i = threadIdx.x; i < count; i += threads) {
            const std::uint32_t at = passed.places[i];
            passed.places[i] = at | atomicAdd(&passed.of_query[at], 1U) << 8;
        }
        __syncthreads();
        if (threadIdx.x < scan_queries && passed.of_query[threadIdx.x] > 0) {
            passed.begin[threadIdx.x] =
                atomicAdd(out.counts + queries.query[threadIdx.x], passed.of_query[threadIdx.x]);
        }
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < count; i += threads) {
            const std::uint32_t at = passed.places[i] & 255U;
            write(queries.query[at], passed.begin[at] + (passed.places[i] >> 8), passed.entries[i]);
        }
    }
};

// Which work a block finds under an index.
struct WorkView {
    ScanWork work;
    const std::uint32_t* list_begin;  // none: the one list of centroids
    std::uint32_t centroids;          // whole groups
    std::uint32_t stretch;            // of centroids in an item
    std::uint32_t queries;
    // Where there are items: the share of them that a launch does.
    std::uint32_t skipped = 0;
    std::uint32_t share = 0;

    __device__ void find(std::uint32_t index, ScanItem& item) const
    {
        if (work.items != nullptr) {
            item = work.items[index];
            return;
        }
        const std::uint32_t tiles = (queries + scan_queries - 1) / scan_queries;
        const std::uint32_t tile = index % tiles;
        item.list = 0;
        item.first_pair = tile * scan_queries;
        item.pairs = min(scan_queries, queries - item.first_pair);
        item.first_row = index / tiles * stretch;
        item.rows = min(stretch, centroids - item.first_row);
    }
    __device__ std::uint32_t first() const { return work.items != nullptr ? *work.first_item + skipped : 0; }
    __device__ std::uint32_t last() const
    {
        return work.items != nullptr ? min(*work.last_item, first() + share) : work.most_items;
    }
};

template <class Output>
__device__ void load_item_queries(ItemQueries& to, const ScanItem& item, const WorkView& view, const QueryView& queries,
                                  const Output& output)
{
    if (threadIdx.x >= scan_queries) return;
    const std::uint32_t i = threadIdx.x;
    const std::uint32_t at = item.first_pair + min(i, item.pairs - 1);
    const std::uint32_t pair = view.work.order != nullptr ? view.work.order[at] : at;
    const ProbeView& probes = view.work.probes;
    const std::uint32_t query = probes.probes > 1 ? pair / probes.probes : pair;
    to.query[i] = query;
    to.slot[i] = probes.slot != nullptr ? probes.slot[pair] : 0;
    to.constant[i] = probes.constant != nullptr ? probes.constant[pair] : 0;
    to.multiplier[i] = queries.multipliers[query];
    to.limit[i] = output.limit_of(query);
}

__device__ void load_query_tile(unsigned char* tile, const ItemQueries& item_queries, std::uint32_t count,
                                const QueryView& queries, std::uint32_t stride, std::uint32_t depth)
{
    for (std::uint32_t i = threadIdx.x; i < scan_queries * tile_pieces; i += threads) {
        const std::uint32_t row = i / tile_pieces;
        const std::uint32_t piece = i % tile_pieces;
        const std::uint32_t at = depth + piece * 8;
        const bool present = row < count && at < stride;
        const __half* from =
            queries.halves + (present ? static_cast<std::size_t>(item_queries.query[row]) * stride + at : 0);
        copy_piece(tile + tile_offset(row, piece), from, present);
    }
}

// The terms of a tile's rows, for when its last depth is multiplied.
__device__ void load_terms(unsigned char* to, const float* terms, std::uint32_t rows)
{
    if (threadIdx.x >= tile_rows / 4) return;
    const bool present = threadIdx.x * 4 < rows;
    copy_piece(to + threadIdx.x * 16, terms + (present ? threadIdx.x * 4 : 0), present);
}

// A warp's share of a tile product: 32 queries x 32 rows.
template <class Rows>
__device__ void multiply_tiles(const unsigned char* query_tile, const unsigned char* row_tile, int warp_query,
                               int warp_row, float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
    const std::uint32_t query_base = shared_address(query_tile);
    const std::uint32_t row_base = shared_address(row_tile);
#pragma unroll
    for (int step = 0; step < tile_depth / 16; ++step) {
        std::uint32_t a[2][4];
        std::uint32_t b[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            load_matrices(a[i], query_base + tile_offset(warp_query + i * 16 + (lane & 15), step * 2 + (lane >> 4)));
        }
        Rows::fragments(row_base, warp_row, step, b);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(sums[i][j], a[i], b[j / 2][(j % 2) * 2], b[j / 2][(j % 2) * 2 + 1]);
        }
    }
}

// The least score of each query in a warp's 32 rows, a group. All lanes take part.
__device__ void emit_minima(const ScanItem& item, const ItemQueries& queries, std::uint32_t row, int warp_query,
                            const DenseOutput& output, const float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            std::uint32_t key = no_key;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                key = min(key, min(order_key(sums[i][j][h * 2]), order_key(sums[i][j][h * 2 + 1])));
            }
            key = min(key, __shfl_xor_sync(0xffffffffU, key, 1));
            key = min(key, __shfl_xor_sync(0xffffffffU, key, 2));
            const int at = warp_query + i * 16 + h * 8 + lane / 4;
            if (lane % 4 == 0 && at < static_cast<int>(item.pairs)) {
                output.write_minimum(queries, at, item.first_row + row, key);
            }
        }
    }
}

// Hands a warp's scores of one tile to the output and clears the sums. Limits are finite: infinities and NaN never
// pass (but for queries that are lost).
template <class Rows, class Output>
__device__ void emit_tile(const Rows& rows, const ScanItem& item, const ItemQueries& queries,
                          std::uint32_t list_position, std::uint32_t tile_row, int warp_query, int warp_row,
                          const float* tile_terms, const std::uint32_t* dead, const Output& output,
                          PassedScores* passed, float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
    std::uint32_t within = 0;  // a bit for each of the 32 scores of this thread
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const std::uint32_t row = tile_row + warp_row + j * 8 + (lane % 4) * 2;
        const bool present = row < item.rows;
        const std::uint32_t position = list_position + item.first_row + row;
        float2 term{0, 0};
        float2 scale{1, 1};
        if (present) {
            if constexpr (Rows::scaled) scale = rows.scales_of(position);
            term = *reinterpret_cast<const float2*>(tile_terms + row - tile_row);
            if (dead != nullptr) {
                const std::uint32_t bits = dead[position / 32] >> (position % 32);
                if ((bits & 1U) != 0) term.x = INFINITY;
                if ((bits & 2U) != 0) term.y = INFINITY;
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int at = warp_query + i * 16 + h * 8 + lane / 4;
                const float multiplier = queries.multiplier[at];
                const float constant = queries.constant[at];
                float& first = sums[i][j][h * 2];
                float& second = sums[i][j][h * 2 + 1];
                first = fmaf(Rows::scaled ? -multiplier * scale.x : -multiplier, first, term.x) + constant;
                second = fmaf(Rows::scaled ? -multiplier * scale.y : -multiplier, second, term.y) + constant;
                if (!present || at >= static_cast<int>(item.pairs)) continue;
                if constexpr (Output::limited) {
                    const float limit = queries.limit[at];
                    const int bit = i * 16 + j * 4 + h * 2;
                    within |= (first <= limit ? 1U : 0U) << bit | (second <= limit ? 2U : 0U) << bit;
                } else {
                    output.write(queries, at, item.first_row + row, first, second);
                }
            }
        }
    }
    if constexpr (!Output::limited) {
        const std::uint32_t row = tile_row + warp_row;
        if (output.out.minima != nullptr && row < item.rows) {
            emit_minima(item, queries, row, warp_query, output, sums);
        }
    } else {
        if (within != 0) {
            std::uint32_t slot = atomicAdd(&passed->count, static_cast<std::uint32_t>(__popc(within)));
#pragma unroll
            for (int bit = 0; bit < 32; ++bit) {
                if ((within >> bit & 1U) == 0) continue;
                const int i = bit / 16;
                const int j = bit / 4 % 4;
                const int h = bit / 2 % 2;
                const std::uint32_t row = tile_row + warp_row + j * 8 + (lane % 4) * 2 + bit % 2;
                output.keep(queries, slot++, warp_query + i * 16 + h * 8 + lane / 4, sums[i][j][h * 2 + bit % 2],
                            list_position + item.first_row + row, *passed);
            }
        }
    }
#pragma unroll
    for (auto& group : sums) {
#pragma unroll
        for (auto& tile : group) {
#pragma unroll
            for (float& sum : tile) sum = 0;
        }
    }
}

template <class Rows, int Stages, class Output>
__global__ __launch_bounds__(threads, 2) void scan_tiles(Rows rows, QueryView queries, std::uint32_t stride,
                                                         const float* terms, WorkView view, Output output)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ ItemQueries item_queries;
    const std::uint32_t begin = view.first() + blockIdx.x;
    const std::uint32_t last = view.last();
    if (begin >= last) return;
    constexpr int stages = Stages;
    PassedScores* passed = nullptr;
    unsigned char* rest = shared + stages * stage_bytes;
    if constexpr (Output::limited) {
        passed = reinterpret_cast<PassedScores*>(rest);
        rest += passed_bytes;
    }
    rows.prepare(rest);
    const int warp = threadIdx.x / 32;
    const int warp_query = (warp % 2) * 32;
    const int warp_row = (warp / 2) * 32;
    const std::uint32_t depths = (stride + tile_depth - 1) / tile_depth;
    for (std::uint32_t index = begin; index < last; index += gridDim.x) {
        ScanItem item;
        view.find(index, item);
        __syncthreads();  // the item before is done with
        load_item_queries(item_queries, item, view, queries, output);
        if (Output::limited && threadIdx.x < scan_queries) {
            passed->of_query[threadIdx.x] = 0;
            if (threadIdx.x == 0) passed->count = 0;
        }
        __syncthreads();
        const std::uint32_t list_position = view.list_begin != nullptr ? view.list_begin[item.list] : 0;
        const std::uint32_t steps = (item.rows + tile_rows - 1) / tile_rows * depths;
        const auto load = [&](std::uint32_t step) {
            if (step < steps) {
                unsigned char* stage = shared + step % stages * stage_bytes;
                const std::uint32_t tile_row = step / depths * tile_rows;
                const std::uint32_t depth = step % depths * tile_depth;
                load_query_tile(stage, item_queries, item.pairs, queries, stride, depth);
                if (step % depths == depths - 1) {
                    load_terms(stage + query_tile_bytes + row_tile_bytes,
                               terms + list_position + item.first_row + tile_row, item.rows - tile_row);
                }
                rows.template load<tile_rows, threads>(
                    stage + query_tile_bytes, list_position + item.first_row + tile_row, item.rows - tile_row, depth);
            }
            commit_copies();
        };
        float sums[2][4][4] = {};
        for (int step = 0; step < stages - 1; ++step) load(step);
        for (std::uint32_t step = 0; step < steps; ++step) {
            wait_for_copies<stages - 2>();
            __syncthreads();
            load(step + stages - 1);
            const unsigned char* stage = shared + step % stages * stage_bytes;
            multiply_tiles<Rows>(stage, stage + query_tile_bytes, warp_query, warp_row, sums);
            if (step % depths == depths - 1) {
                const auto* tile_terms = reinterpret_cast<const float*>(stage + query_tile_bytes + row_tile_bytes);
                emit_tile(rows, item, item_queries, list_position, step / depths * tile_rows, warp_query, warp_row,
                          tile_terms, view.work.dead, output, passed, sums);
            }
        }
        if constexpr (Output::limited) output.flush(item_queries, *passed);
    }
}

// One thread for 8 dimensions of a position.
__global__ __launch_bounds__(decode_threads) void decode_positions(CodeTileRows rows, std::uint32_t positions,
                                                                   std::uint32_t stride, __half* out)
{
    const std::uint32_t position = blockIdx.x * 32 + threadIdx.x / 8;
    if (position >= positions) return;
    rows.codebooks = rows.code.half_codebooks;
    for (std::uint32_t at = threadIdx.x % 8 * 8; at < stride; at += 64) {
        *reinterpret_cast<uint4*>(out + static_cast<std::size_t>(position) * stride + at) = rows.decode(position, at);
    }
}

// Shared memory of a block beside the ring, and what its fixed variables take of the device's limit.
template <class Output>
constexpr std::uint32_t beside_ring = Output::limited ? passed_bytes : 0;
constexpr std::uint32_t fixed_bytes = 2048;
constexpr int fewest_stages = 2;  // fit a block of every device

// Where there are items, blocks take them in strides.
template <class Rows, int Stages, class Output>
void launch_tiles(const Rows& rows, const QueryView& queries, std::uint32_t stride, const float* terms, WorkView view,
                  const Output& output, std::uint32_t tiles_each, std::uint32_t bytes, cudaStream_t stream)
{
    const ScanWork& work = view.work;
    if (work.most_items == 0) return;
    allow_shared_memory(scan_tiles<Rows, Stages, Output>);
    if (work.items == nullptr) {
        scan_tiles<Rows, Stages, Output>
            <<<work.most_items, threads, bytes, stream>>>(rows, queries, stride, terms, view, output);
        check_launch("scan of centroids");
        return;
    }
    const auto tiles = static_cast<std::uint32_t>(std::min<std::uint64_t>(work.tiles, launch_tiles_most));
    const std::uint32_t most = std::max(fewest_blocks, launch_tiles_most / std::max(1U, work.item_tiles));
    for (; view.skipped < work.most_items; view.skipped += view.share) {
        view.share = std::min(most, work.most_items - view.skipped);
        const std::uint32_t blocks = std::min(view.share, std::max(fewest_blocks, tiles / tiles_each));
        scan_tiles<Rows, Stages, Output>
            <<<blocks, threads, bytes, stream>>>(rows, queries, stride, terms, view, output);
        check_launch("scan of lists");
    }
}

template <class Rows, class Output>
void launch(const Rows& rows, const QueryView& queries, std::uint32_t stride, const float* terms, const WorkView& view,
            const Output& output, std::uint32_t extra_bytes, cudaStream_t stream)
{
    const std::uint32_t beside = beside_ring<Output> + extra_bytes;
    const std::uint32_t bytes = Rows::stages * stage_bytes + beside;
    const std::uint32_t tiles_each = extra_bytes > 0 ? block_tiles_with_codebooks : block_tiles;
    if (Rows::stages > fewest_stages && bytes + fixed_bytes > view.work.shared_bytes) {
        return launch_tiles<Rows, fewest_stages>(rows, queries, stride, terms, view, output, tiles_each,
                                                 fewest_stages * stage_bytes + beside, stream);
    }
    launch_tiles<Rows, Rows::stages>(rows, queries, stride, terms, view, output, tiles_each, bytes, stream);
}

template <class Output>
void scan(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const Output& output,
          cudaStream_t stream)
{
    const WorkView view{work, mirror.list_begin, 0, 0, 0};
    if (mirror.scans_bytes) {
        launch(ByteTileRows{mirror.byte}, queries, mirror.stride, mirror.row_terms, view, output, 0, stream);
        return;
    }
    const __half* halves = mirror.scans_codes ? work.decoded : mirror.half.rows;
    if (halves != nullptr) {
        launch(HalfTileRows{halves, mirror.stride}, queries, mirror.stride, mirror.row_terms, view, output, 0, stream);
        return;
    }
    CodeTileRows rows = CodeTileRows::of(mirror);
    const std::uint32_t codebook_halves = 256 * mirror.dimensions;
    const std::uint32_t others = CodeTileRows::stages * stage_bytes + beside_ring<Output> + fixed_bytes;
    const bool fits = codebook_halves * 2 <= most_codebook_bytes && codebook_halves * 2 + others <= work.shared_bytes;
    rows.kept = fits ? codebook_halves : 0;
    launch(rows, queries, mirror.stride, mirror.row_terms, view, output, rows.kept * 2, stream);
}

}  // namespace

void scan_lists(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const DenseScores& out,
                cudaStream_t stream)
{
    scan(mirror, queries, work, DenseOutput{out}, stream);
}

void scan_lists(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const LimitedScores& out,
                cudaStream_t stream)
{
    scan(mirror, queries, work, LimitedOutput{out}, stream);
}

void estimate_tiles(const MirrorView& mirror, std::uint64_t pairs, std::uint64_t average_rows, ScanWork& work)
{
    const std::uint64_t depths = (mirror.stride + tile_depth - 1) / tile_depth;
    const std::uint64_t list_tiles = (average_rows + tile_rows - 1) / tile_rows * depths;
    work.item_tiles =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(list_tiles, 1, item_rows / tile_rows * depths));
    work.tiles = (pairs / scan_queries + std::min<std::uint64_t>(pairs, mirror.lists)) * list_tiles;
}

void decode_rows(const MirrorView& mirror, __half* out, cudaStream_t stream)
{
    if (mirror.positions == 0) return;
    decode_positions<<<(mirror.positions + 31) / 32, decode_threads, 0, stream>>>(CodeTileRows::of(mirror),
                                                                                  mirror.positions, mirror.stride, out);
    check_launch("decoding rows");
}

void scan_centroids(const MirrorView& mirror, const QueryView& queries, std::uint32_t count, const DenseScores& out,
                    std::uint32_t shared_bytes, cudaStream_t stream)
{
    WorkView view{};
    view.work.shared_bytes = shared_bytes;
    view.centroids = whole_groups(mirror.lists);
    view.queries = count;
    const std::uint32_t tiles = (count + scan_queries - 1) / scan_queries;
    // Few queries: short stretches, so that all multiprocessors take part.
    view.stretch = tiles > 32 ? 1024 : tile_rows;
    view.work.most_items = tiles * ((view.centroids + view.stretch - 1) / view.stretch);
    launch(HalfTileRows{mirror.centre.rows, mirror.stride}, queries, mirror.stride, mirror.centre_terms, view,
           DenseOutput{out}, 0, stream);
}

}  // namespace pgwarp::cuda::ivfadc
