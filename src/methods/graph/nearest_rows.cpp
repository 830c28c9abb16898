#include "methods/graph/nearest_rows.h"

#include <algorithm>
#include <cmath>

#include "methods/graph/build_loop.h"
#include "methods/graph/graph.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_queries = 48;
constexpr std::size_t tile_rows = 512;
constexpr std::size_t step_rows = 8 * tile_queries;

// Sort what was found into the row's place, itself left out.
void keep_nearest(TopK& best, std::uint32_t own, std::size_t width, std::uint32_t* out)
{
    std::size_t kept = 0;
    for (const Candidate& candidate : best.take_sorted()) {
        if (candidate.row != own && kept < width) out[kept++] = candidate.row;
    }
    std::fill(out + kept, out + width, no_neighbour);
}

}  // namespace

NearestRows exact_nearest_rows(const GraphSpace& space, std::size_t width, RowBitmap left_out,
                               const BuildProgress& progress, ThreadPool& pool)
{
    const std::size_t count = space.count();
    NearestRows nearest{width, {}};
    nearest.rows.resize(count * width);
    std::vector<float> norms(count);
    if (!space.has_bits()) squared_norms(space.rows().data(), count, space.dimensions(), norms.data());
    for_rows(count, step_rows, tile_queries, "comparing rows", progress, pool,
             [&](std::size_t first, std::size_t last) {
                 std::vector<float> tile((last - first) * tile_rows);
                 std::vector<TopK> best(last - first, TopK(width + 1));
                 for (std::size_t begin = 0; begin < count; begin += tile_rows) {
                     if (progress.cancel != nullptr) progress.cancel->check();
                     const std::size_t columns = std::min(tile_rows, count - begin);
                     score_tile(space.metric(), space.row(first), last - first, space.row(begin), norms.data() + begin,
                                columns, space.dimensions(), tile.data());
                     for (std::size_t q = first; q < last; ++q) {
                         float* scores = tile.data() + (q - first) * columns;
                         for (std::size_t i = 0; i < columns && !left_out.empty(); ++i) {
                             if (bit_is_set(left_out, begin + i)) scores[i] = HUGE_VALF;
                         }
                         best[q - first].push_block(scores, columns, static_cast<std::uint32_t>(begin));
                     }
                 }
                 for (std::size_t q = first; q < last; ++q) {
                     if (bit_is_set(left_out, q)) {
                         std::fill_n(nearest.of(q), width, no_neighbour);
                     } else {
                         keep_nearest(best[q - first], static_cast<std::uint32_t>(q), width, nearest.of(q));
                     }
                 }
             });
    return nearest;
}

}  // namespace pgwarp
