// Proposals by bytes, with bounds of their error.
#include "methods/ivfadc/proposer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "methods/ivfadc/ivfadc.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr double rounding = 1e-4;       // of scores in single precision, relative to their terms
constexpr double score_deviations = 3;  // standard deviations that the score of a centroid errs by at most
constexpr double most_along = 1e37;
constexpr std::size_t scored_together = 4 * ByteLists::block;  // centroids

}  // namespace

bool Proposer::build(Metric metric, std::size_t dimensions, std::span<const float> centroids,
                     const InvertedLists& lists, const RowStore& store, StoredBytes* stored, ThreadPool& pool)
{
    std::vector<float> first(dimensions);
    if (lists.rows() == 0 || (stored == nullptr && !store.decode(0, first.data()))) return false;
    metric_ = metric;
    dimensions_ = dimensions;
    centroids_ = centroids;

    std::vector<double> sum(dimensions, 0.0);
    for (std::size_t i = 0; i < centroids.size(); ++i) sum[i % dimensions] += centroids[i];
    origin_.resize(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d)
        origin_[d] = static_cast<float>(sum[d] / static_cast<double>(lists.lists()));
    centres_.layout({static_cast<std::uint32_t>(lists.lists())}, dimensions, metric == Metric::l2);
    for (std::size_t list = 0; list < lists.lists(); ++list)
        centres_.set(list, centroids.data() + list * dimensions, origin_.data());
    centre_norm_ = 0;
    for (std::size_t list = 0; list < lists.lists(); ++list) {
        const float* centroid = centroids.data() + list * dimensions;
        centre_norm_ =
            std::max(centre_norm_, std::sqrt(double{pgwarp::score(Metric::l2, centroid, origin_.data(), dimensions)}));
    }
    centre_scale_ = centres_.largest_scale();

    if (stored != nullptr) {
        rows_ = stored->take(pool);
    } else {
        derive_rows(lists, store, pool);
    }
    if (metric != Metric::l2) weigh_rows(lists, store, pool);
    const double root = std::sqrt(static_cast<double>(dimensions));
    row_error_ = 0.5 * rows_.largest_scale() * root;
    row_norm_ = 128 * rows_.largest_scale() * root;
    return true;
}

// Returns an upper bound of the score of a row at distance `reach`. Scores are computed from the bytes of rows and
// query.
float Proposer::farthest_score(const ByteQuery& bytes, float squared_norm, double reach) const
{
    if (!std::isfinite(reach)) return std::numeric_limits<float>::infinity();
    const double query_norm = std::sqrt(static_cast<double>(squared_norm));
    const double query_error = 0.5 * bytes.step * std::sqrt(static_cast<double>(dimensions_));
    double score = 0;
    if (metric_ == Metric::l2) {
        // |y - r|^2 + 2 f.r for a query y and its error f, a row r with error e.
        const double distance = std::sqrt(std::max(reach, 0.0)) + row_error_;
        score = distance * distance + 2 * query_error * std::min(row_norm_, query_norm + distance);
    } else {
        // The error of -y.r - a c.r for a query y + a c: f.r, and at most (y + a c).e where c.r is computed from bytes.
        score = reach + query_error * row_norm_ + query_norm * row_error_;
    }
    return static_cast<float>(score + rounding * (std::fabs(score) + query_norm * query_norm));
}

void Proposer::derive_rows(const InvertedLists& lists, const RowStore& store, ThreadPool& pool)
{
    std::vector<std::uint32_t> sizes(lists.lists());
    for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] = lists.end(list) - lists.begin(list);
    rows_.layout(sizes, dimensions_, metric_ == Metric::l2);
    pool.parallel_for(lists.lists(), 4, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(dimensions_);
        for (std::size_t list = begin; list < end; ++list) {
            for (std::size_t i = 0; i < sizes[list]; ++i) {
                store.decode(lists.begin(list) + i, row.data());
                rows_.set(rows_.begin(list) + i, row.data(), centroids_.data() + list * dimensions_);
            }
        }
    });
}

// Computes c.r for all rows r of a list with the centroid c, by the store's vectors where it has them.
void Proposer::weigh_rows(const InvertedLists& lists, const RowStore& store, ThreadPool& pool)
{
    centroid_weight_.resize(lists.lists());
    pool.parallel_for(lists.lists(), 4, [&](std::size_t begin, std::size_t end) {
        const std::vector<float> nothing(dimensions_, 0.0F);
        std::vector<float> row(dimensions_);
        for (std::size_t list = begin; list < end; ++list) {
            const float* centroid = centroids_.data() + list * dimensions_;
            const double squared = canonical_dot(centroid, centroid, dimensions_);
            const auto weight = static_cast<float>(1 / squared);
            if (!std::isnormal(weight)) continue;
            centroid_weight_[list] = weight;
            for (std::size_t i = 0; i < rows_.size(list); ++i) {
                const std::size_t slot = rows_.begin(list) + i;
                double along = 0;
                if (store.decode(lists.begin(list) + i, row.data())) {
                    along = canonical_dot(centroid, row.data(), dimensions_) - squared;
                } else {
                    rows_.decode(slot, nothing.data(), row.data());
                    along = canonical_dot(centroid, row.data(), dimensions_);
                }
                // A list with a product beyond float's range gets weight 0.
                if (std::fabs(along) < most_along) {
                    rows_.set_bias(slot, static_cast<float>(-along));
                } else {
                    centroid_weight_[list] = 0;
                }
            }
        }
    });
}

void Proposer::nearest_lists(const float* query, std::span<const std::size_t> probes, ThreadPool& pool,
                             std::vector<std::vector<Candidate>>& nearest) const
{
    thread_local ByteQuery own_bytes;
    thread_local std::vector<float> own_scores;
    ByteQuery& bytes = own_bytes;  // of this thread; other threads of the loop use it
    std::vector<float>& scores = own_scores;
    scores.resize(centres_.longest());
    bytes.assign(query, metric_ == Metric::l2 ? origin_.data() : nullptr, dimensions_);
    const std::size_t grain = items_at_a_time(scored_together * dimensions_) * scored_together;
    pool.parallel_for(centres_.longest(), grain, [&](std::size_t begin, std::size_t end) {
        centres_.score(0, begin, end - begin, bytes, 0, scores.data() + begin);
    });
    const std::size_t lists = centres_.size(0);
    for (const std::size_t some : probes) {
        TopK best(some);
        best.push_block(scores.data(), lists, 0);
        nearest.push_back(best.take_sorted());
        if (nearest.back().size() == some && some > 0 && some < lists)
            settle_last(query, bytes, scores, nearest.back());
    }
}

// Compares by floats the centroids that rounding may have put on the wrong side of the last list.
void Proposer::settle_last(const float* query, const ByteQuery& bytes, const std::vector<float>& scores,
                           std::vector<Candidate>& nearest) const
{
    // Each product errs by the rounding of both factors, evenly spread within half a step.
    const double query_norm = std::sqrt(static_cast<double>(bytes.squared_norm));
    const double deviation = std::hypot(bytes.step * centre_norm_, centre_scale_ * query_norm) / std::sqrt(12.0);
    const auto error = static_cast<float>(score_deviations * (metric_ == Metric::l2 ? 2 : 1) * deviation);
    const float last = nearest.back().score;
    thread_local std::vector<std::uint32_t> below;
    below.resize(scores.size() + ByteLists::block);
    const std::size_t count = select_below(scores.data(), centres_.size(0), last + error, below.data());
    const std::size_t wanted = nearest.size();
    while (!nearest.empty() && nearest.back().score >= last - error) nearest.pop_back();
    TopK rest(wanted - nearest.size());
    const Metric coarse = coarse_metric(metric_);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t list = below[i];
        if (scores[list] >= last - error)
            rest.push(pgwarp::score(coarse, query, centroids_.data() + list * dimensions_, dimensions_), list);
    }
    for (const Candidate& list : rest.take_sorted()) nearest.push_back(list);
}

float Proposer::score(const float* query, std::uint32_t list, double reach, float* out) const
{
    thread_local ByteQuery bytes;
    const float* centroid = centroids_.data() + std::size_t{list} * dimensions_;
    float base = 0;
    float squared_norm = 0;
    if (metric_ == Metric::l2) {
        bytes.assign(query, centroid, dimensions_);
        base = bytes.squared_norm;
        squared_norm = base;
    } else {
        // q.r = y.r + a c.r, and c.r is known, so that y = q - a c alone is rounded; it is shortest where it is
        // orthogonal to c.
        base = pgwarp::score(Metric::inner_product, query, centroid, dimensions_);
        float along = -base * centroid_weight_[list];
        if (!std::isfinite(along)) along = 0;
        bytes.assign(query, centroid, dimensions_, along);
        squared_norm = bytes.squared_norm - along * base;
    }
    rows_.score(list, bytes, base, out);
    return farthest_score(bytes, squared_norm, reach);
}

}  // namespace pgwarp
