// True neighbours of queries by tiles of scores, as rows come.
#include "methods/recall/streamed_truth.h"

#include <algorithm>

#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_rows = 512;
constexpr std::size_t queries_of_group = 32;
constexpr std::size_t wanted = Calibration::ks[3];
// Rows that are kept beyond the wanted ones, so that their end is seldom among equally far ones.
constexpr std::size_t spare = 64;
constexpr std::uint32_t no_number = 0xffffffff;

std::uint64_t number_of(const Tid& tid)
{
    return std::uint64_t{tid.block} << 16 | tid.offset;
}

}  // namespace

StreamedTruth::StreamedTruth(Metric metric, std::vector<float> queries, std::span<const Tid> tids,
                             std::vector<float> origin)
    : metric_(metric),
      dimensions_(origin.size()),
      origin_(std::move(origin)),
      queries_(std::move(queries)),
      moved_(queries_),
      own_(tids.size(), no_number),
      groups_((tids.size() + queries_of_group - 1) / queries_of_group)
{
    for (const Tid& tid : tids) tids_.push_back(number_of(tid));
    // Of the metrics, L2 alone does not depend on the origin.
    if (metric_ != Metric::l2) origin_.assign(dimensions_, 0.0F);
    for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] -= origin_[i % dimensions_];
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const std::size_t first = group * queries_of_group;
        const std::size_t count = std::min(queries_of_group, tids.size() - first);
        groups_[group].nearest = std::make_unique<NearestOfQueries>(
            metric_, std::span(moved_).subspan(first * dimensions_, count * dimensions_), dimensions_,
            wanted + 1 + spare);
    }
}

void StreamedTruth::compare(std::size_t first, std::span<const Tid> tids, std::span<float> rows,
                            const CancelToken* cancel, ThreadPool& pool)
{
    for (std::size_t i = 0; i < tids.size(); ++i) {
        const auto at = std::ranges::lower_bound(tids_, number_of(tids[i]));
        if (at == tids_.end() || *at != number_of(tids[i])) continue;
        own_[static_cast<std::size_t>(at - tids_.begin())] = static_cast<std::uint32_t>(first + i);
    }
    std::vector<float> norms(tids.size());
    pool.parallel_for(tids.size(), tile_rows, [&](std::size_t begin, std::size_t end) {
        float* const own = rows.data() + begin * dimensions_;
        for (std::size_t i = 0; i < (end - begin) * dimensions_; ++i) own[i] -= origin_[i % dimensions_];
        squared_norms(own, end - begin, dimensions_, norms.data() + begin);
    });
    pool.parallel_for(groups_.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t group = begin; group < end; ++group) {
            const std::lock_guard lock(groups_[group].mutex);
            for (std::size_t row = 0; row < tids.size(); row += tile_rows) {
                if (cancel != nullptr) cancel->check();
                groups_[group].nearest->compare(rows.data() + row * dimensions_, norms.data() + row,
                                                std::min(tile_rows, tids.size() - row), first + row, {});
            }
        }
    });
}

// Which rows of the largest score were kept depends on the order in which they came, unless no row was left out.
std::vector<std::uint32_t> StreamedTruth::neighbours(std::size_t query, std::span<const std::uint32_t> place_of)
{
    std::vector<Candidate> found = groups_[query / queries_of_group].nearest->take(query % queries_of_group);
    if (found.size() == wanted + 1 + spare && found.front().score < found.back().score) {
        const float farthest = found.back().score;
        std::erase_if(found, [farthest](const Candidate& one) { return one.score == farthest; });
    }
    for (Candidate& one : found) one.row = place_of[one.row];
    std::sort(found.begin(), found.end());
    std::vector<std::uint32_t> rows;
    for (const Candidate& one : found) {
        if (one.row != place_of[own_[query]] && rows.size() < wanted) rows.push_back(one.row);
    }
    return rows;
}

SampledQueries StreamedTruth::take(std::span<const std::uint32_t> order)
{
    std::vector<std::uint32_t> place_of(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place_of[order[i]] = static_cast<std::uint32_t>(i);
    SampledQueries sampled;
    for (std::size_t query = 0; query < own_.size(); ++query) {
        if (own_[query] == no_number) continue;
        sampled.rows.push_back(place_of[own_[query]]);
        const auto begin = queries_.begin() + static_cast<std::ptrdiff_t>(query * dimensions_);
        sampled.queries.insert(sampled.queries.end(), begin, begin + static_cast<std::ptrdiff_t>(dimensions_));
        sampled.truth.push_back(neighbours(query, place_of));
    }
    return sampled;
}

}  // namespace pgwarp
