#include "methods/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numeric/distance.h"
#include "numeric/sample.h"
#include "numeric/top_k.h"
#include "protocol/calibration.h"

namespace pgwarp
{

namespace
{

// In order of scores by differences: those by products don't tell rows apart that are near each other and far out.
std::vector<Candidate> by_difference(Metric metric, const float* rows, const float* query, std::size_t dimensions,
                                     TopK& best)
{
    std::vector<Candidate> found = best.take_sorted();
    for (Candidate& candidate : found)
        candidate.score = score(metric, query, rows + candidate.row * dimensions, dimensions);
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, RowBitmap left_out,
                                                          std::size_t depth)
{
    constexpr std::size_t tile_rows = 512;
    // Wide tiles: every group of queries reads all rows once.
    constexpr std::size_t widest = 128;
    const std::size_t share = (sample.size() + pool.threads() - 1) / pool.threads();
    const std::size_t tile_queries = std::clamp<std::size_t>(share, 1, widest);
    const std::size_t count = rows.size() / dimensions;
    const std::size_t wanted = std::min(depth + 1, count);
    const std::vector<float> queries = gather_rows(rows.data(), dimensions, sample);
    std::vector<float> norms(count);
    pool.parallel_for(is_of_bits(metric) ? 0 : count, 4096, [&](std::size_t begin, std::size_t end) {
        squared_norms(rows.data() + begin * dimensions, end - begin, dimensions, norms.data() + begin);
    });
    std::vector<std::vector<std::uint32_t>> truth(sample.size());
    pool.parallel_for(sample.size(), tile_queries, [&](std::size_t first, std::size_t last) {
        std::vector<TopK> best(last - first, TopK(wanted));
        std::vector<float> tile((last - first) * tile_rows);
        for (std::size_t begin = 0; begin < count; begin += tile_rows) {
            if (cancel != nullptr) cancel->check();
            const std::size_t width = std::min(tile_rows, count - begin);
            score_tile(metric, queries.data() + first * dimensions, last - first, rows.data() + begin * dimensions,
                       norms.data() + begin, width, dimensions, tile.data());
            for (std::size_t i = 0; i < width; ++i) {
                if (!bit_is_set(left_out, begin + i)) continue;
                for (std::size_t q = 0; q < last - first; ++q)
                    tile[q * width + i] = std::numeric_limits<float>::infinity();
            }
            for (std::size_t q = 0; q < last - first; ++q) {
                best[q].push_block(tile.data() + q * width, width, static_cast<std::uint32_t>(begin));
            }
        }
        for (std::size_t q = first; q < last; ++q) {
            for (const Candidate& candidate :
                 by_difference(metric, rows.data(), queries.data() + q * dimensions, dimensions, best[q - first])) {
                if (candidate.row == sample[q] || bit_is_set(left_out, candidate.row)) continue;
                if (truth[q].size() < depth) truth[q].push_back(candidate.row);
            }
        }
    });
    return truth;
}

std::vector<std::uint32_t> measured_ks(std::size_t column, std::size_t rows, ResultKind kind, std::size_t steps)
{
    if (column > 0 && rows <= Calibration::ks[column - 1]) return {};
    const auto width = [&](std::uint32_t k) { return search_width({kind}, k); };
    const std::uint32_t least = column == 0 ? 1 : Calibration::ks[column - 1] + 1;
    const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(rows, least, Calibration::ks[column]));
    const double factor = static_cast<double>(most) / least;
    std::vector<std::uint32_t> ks;
    for (std::size_t step = 0; step <= steps; ++step) {
        const double share = static_cast<double>(step) / static_cast<double>(steps);
        auto k = std::min(most, static_cast<std::uint32_t>(std::lround(least * std::pow(factor, share))));
        while (k < most && width(k + 1) == width(k)) ++k;
        if (ks.empty() || ks.back() < k) ks.push_back(k);
    }
    return ks;
}

void RecallCurve::add(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries)
{
    constexpr double one_sided_95 = 1.645;
    if (points_.count == Calibration::capacity) return;
    CalibrationPoint& point = points_.points[points_.count++];
    point.effort = effort;
    for (std::size_t k = 0; k < 4; ++k) {
        double sum = 0;
        double squares = 0;
        std::size_t measured = 0;
        const auto count = [&](double share) {
            sum += share;
            squares += share * share;
            ++measured;
        };
        for (const auto& shares : shares_of_queries) {
            if (shares[k] >= 0) count(shares[k]);
        }
        if (measured == 0) {
            point.recall[k] = -1;
            continue;
        }
        if (nearer_first_) count(1 - 1.0 / Calibration::ks[k]);
        const double n = static_cast<double>(measured);
        const double mean = sum / n;
        const double deviation = std::sqrt(std::max(0.0, squares / n - mean * mean) / n);
        point.recall[k] = static_cast<float>(std::max(0.0, mean - one_sided_95 * deviation));
    }
    for (std::size_t k = 3; nearer_first_ && k > 0; --k) {
        if (point.recall[k] >= 0) point.recall[k - 1] = std::max(point.recall[k - 1], point.recall[k]);
    }
}

void RecallCurve::add_complete(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries)
{
    if (points_.count == Calibration::capacity) return;
    add(effort, shares_of_queries);
    for (float& recall : points_.points[points_.count - 1].recall) {
        if (recall >= 0) recall = 1;
    }
}

Calibration RecallCurve::calibration() const
{
    Calibration result = points_;
    result.sample = static_cast<std::uint32_t>(queries_);
    for (std::uint32_t i = 1; i < result.count; ++i) {
        for (std::size_t k = 0; k < 4; ++k) {
            result.points[i].recall[k] = std::max(result.points[i].recall[k], result.points[i - 1].recall[k]);
        }
    }
    return result;
}

void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step)
{
    std::vector<std::byte> piece;
    for (const ArrayShape& array : builder.arrays()) {
        for (std::uint64_t offset = 0; offset < array.bytes(); offset += step) {
            piece.resize(std::min(step, array.bytes() - offset));
            builder.read(array.name, offset, piece);
            searcher.write(array.name, offset, piece);
        }
    }
    searcher.finish_load(pool);
}

}  // namespace pgwarp
