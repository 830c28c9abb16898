// True neighbours by tiles of scores, then ordered by scores from differences.
#include "methods/recall/truth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/distance.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_rows = 512;
// Wide tiles: every group of queries reads all rows once.
constexpr std::size_t most_tile_queries = 128;

// Sorts candidates by scores from differences. Scores from products lose the differences of rows that are near each
// other and far from the origin.
std::vector<Candidate> by_difference(Metric metric, const float* rows, const float* query, std::size_t dimensions,
                                     std::vector<Candidate> found)
{
    for (Candidate& candidate : found) {
        const float exact = score(metric, query, rows + candidate.row * dimensions, dimensions);
        // An overflow may leave no number, which has no place in an order.
        candidate.score = std::isnan(exact) ? std::numeric_limits<float>::infinity() : exact;
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

NearestOfQueries::NearestOfQueries(Metric metric, std::span<const float> queries, std::size_t dimensions,
                                   std::size_t wanted)
    : metric_(metric), queries_(queries), dimensions_(dimensions), best_(queries.size() / dimensions, TopK(wanted))
{
}

void NearestOfQueries::compare(const float* rows, const float* norms, std::size_t count, std::size_t first,
                               RowBitmap left_out)
{
    for (std::size_t from = 0; from < best_.size(); from += most_tile_queries) {
        const std::size_t height = std::min(most_tile_queries, best_.size() - from);
        tile_.resize(height * count);
        score_tile(metric_, queries_.data() + from * dimensions_, height, rows, norms, count, dimensions_,
                   tile_.data());
        for (std::size_t i = 0; i < count; ++i) {
            if (!bit_is_set(left_out, first + i)) continue;
            for (std::size_t q = 0; q < height; ++q) tile_[q * count + i] = std::numeric_limits<float>::infinity();
        }
        for (std::size_t q = 0; q < height; ++q)
            best_[from + q].push_block(tile_.data() + q * count, count, static_cast<std::uint32_t>(first));
    }
}

std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, RowBitmap left_out,
                                                          std::size_t depth)
{
    const std::size_t share = (sample.size() + pool.threads() - 1) / pool.threads();
    const std::size_t together = std::clamp<std::size_t>(share, 1, most_tile_queries);
    const std::size_t count = rows.size() / dimensions;
    const std::vector<float> queries = gather_rows(rows.data(), dimensions, sample);
    std::vector<float> norms(count);
    pool.parallel_for(is_of_bits(metric) ? 0 : count, 4096, [&](std::size_t begin, std::size_t end) {
        squared_norms(rows.data() + begin * dimensions, end - begin, dimensions, norms.data() + begin);
    });
    std::vector<std::vector<std::uint32_t>> truth(sample.size());
    pool.parallel_for(sample.size(), together, [&](std::size_t first, std::size_t last) {
        const std::span<const float> own = std::span(queries).subspan(first * dimensions, (last - first) * dimensions);
        NearestOfQueries nearest(metric, own, dimensions, std::min(depth + 1, count));
        for (std::size_t begin = 0; begin < count; begin += tile_rows) {
            if (cancel != nullptr) cancel->check();
            nearest.compare(rows.data() + begin * dimensions, norms.data() + begin, std::min(tile_rows, count - begin),
                            begin, left_out);
        }
        for (std::size_t q = first; q < last; ++q) {
            for (const Candidate& candidate : by_difference(metric, rows.data(), queries.data() + q * dimensions,
                                                            dimensions, nearest.take(q - first))) {
                if (candidate.row == sample[q] || bit_is_set(left_out, candidate.row)) continue;
                if (truth[q].size() < depth) truth[q].push_back(candidate.row);
            }
        }
    });
    return truth;
}

std::vector<std::vector<double>> distances_of_truth(Metric metric, std::span<const float> rows, std::size_t dimensions,
                                                    std::span<const float> queries,
                                                    const std::vector<std::vector<std::uint32_t>>& truth)
{
    if (!is_of_bits(metric)) return {};
    std::vector<std::vector<double>> distances(truth.size());
    for (std::size_t q = 0; q < truth.size(); ++q) {
        const float* query = queries.data() + q * dimensions;
        for (const std::uint32_t row : truth[q])
            distances[q].push_back(canonical_distance(metric, query, rows.data() + row * dimensions, dimensions));
    }
    return distances;
}

}  // namespace pgwarp
