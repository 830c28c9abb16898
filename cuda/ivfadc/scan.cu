#include "ivfadc/scan.h"

#include <algorithm>

#include "device/error.h"
#include "rows/tile_scan.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr std::uint32_t most_codebook_bytes = 64 << 10;
constexpr int decode_threads = 256;
// A block ends after about this number of tiles, some 0.05 to 0.15 ms, as blocks of streams with priority wait for it.
// Where each block first loads the codebooks, it does more tiles.
constexpr std::uint32_t block_tiles = 32;
constexpr std::uint32_t block_tiles_with_codebooks = 128;
constexpr std::uint32_t launch_tiles_most = 3U << 16;  // of a launch: one to two milliseconds
constexpr std::uint32_t fewest_blocks = 132 * 8;       // more than are resident, which evens out unequal items

// The items of one launch. Blocks take them in strides.
struct ListWork {
    ProbeView probes;
    const ScanItem* items;
    const std::uint32_t* first_item;
    const std::uint32_t* last_item;
    const std::uint32_t* order;
    const std::uint32_t* list_begin;
    const std::uint32_t* dead;
    std::uint32_t skipped;
    std::uint32_t share;

    __device__ std::uint32_t first() const { return *first_item + skipped; }
    __device__ std::uint32_t last() const { return min(*last_item, first() + share); }
    __device__ TileItem item(std::uint32_t index) const
    {
        const ScanItem& item = items[index];
        return {item.first_pair, item.pairs, list_begin[item.list] + item.first_row, item.first_row, item.rows};
    }
    __device__ TilePair pair(std::uint32_t at) const
    {
        const std::uint32_t pair = order[at];
        return {probes.probes > 1 ? pair / probes.probes : pair, probes.slot[pair], probes.constant[pair]};
    }
};

// Each thread decodes 8 dimensions of a position at a time.
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

template <class Rows, class Output>
void launch(const MirrorView& mirror, const Rows& rows, const QueryView& queries, const ScanWork& work,
            const Output& output, std::uint32_t extra_bytes, cudaStream_t stream)
{
    const auto tiles = static_cast<std::uint32_t>(std::min<std::uint64_t>(work.tiles, launch_tiles_most));
    const std::uint32_t tiles_each = extra_bytes > 0 ? block_tiles_with_codebooks : block_tiles;
    const std::uint32_t most = std::max(fewest_blocks, launch_tiles_most / std::max(1U, work.item_tiles));
    ListWork part{work.probes, work.items, work.first_item, work.last_item, work.order, mirror.list_begin, work.dead,
                  0,           0};
    with_tile_kernel<Rows, ListWork, Output>(extra_bytes, work.shared_bytes, [&](auto kernel, std::uint32_t bytes) {
        for (; part.skipped < work.most_items; part.skipped += part.share) {
            part.share = std::min(most, work.most_items - part.skipped);
            const std::uint32_t blocks = std::min(part.share, std::max(fewest_blocks, tiles / tiles_each));
            kernel<<<blocks, scan_threads, bytes, stream>>>(rows, queries, mirror.stride, mirror.row_terms, part,
                                                            output);
            check_launch("scan of lists");
        }
    });
}

template <class Output>
void scan(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const Output& output,
          cudaStream_t stream)
{
    if (work.most_items == 0) return;
    if (mirror.scans_bytes) return launch(mirror, ByteTileRows{mirror.byte}, queries, work, output, 0, stream);
    const __half* halves = mirror.scans_codes ? work.decoded : mirror.half.rows;
    if (halves != nullptr) {
        return launch(mirror, HalfTileRows{halves, mirror.stride}, queries, work, output, 0, stream);
    }
    CodeTileRows rows = CodeTileRows::of(mirror);
    const std::uint32_t codebook_halves = 256 * mirror.dimensions;
    const std::uint32_t others = CodeTileRows::stages * stage_bytes + beside_ring<Output> + fixed_bytes;
    const bool fits = codebook_halves * 2 <= most_codebook_bytes && codebook_halves * 2 + others <= work.shared_bytes;
    rows.kept = fits ? codebook_halves : 0;
    launch(mirror, rows, queries, work, output, rows.kept * 2, stream);
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
    const std::uint64_t list_tiles = (average_rows + scan_tile_rows - 1) / scan_tile_rows * depths;
    work.item_tiles =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(list_tiles, 1, item_rows / scan_tile_rows * depths));
    work.tiles = (pairs / scan_queries + std::min<std::uint64_t>(pairs, mirror.lists)) * list_tiles;
}

void decode_rows(const MirrorView& mirror, __half* out, cudaStream_t stream)
{
    if (mirror.positions == 0) return;
    decode_positions<<<(mirror.positions + 31) / 32, decode_threads, 0, stream>>>(CodeTileRows::of(mirror),
                                                                                  mirror.positions, mirror.stride, out);
    check_launch("decoding rows");
}

}  // namespace pgwarp::cuda::ivfadc
