// True neighbours of queries by tiles of scores, as rows come.
#include "methods/recall/streamed_truth.h"

#include <algorithm>

#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t streamed_tile_rows = 512;
constexpr std::size_t queries_of_group = 32;
constexpr std::size_t wanted = Calibration::ks[3];
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
        const std::size_t count = std::min(queries_of_group, tids.size() - group * queries_of_group);
        groups_[group].nearest.assign(count, NearestByTid(wanted + 1));
    }
}

void StreamedTruth::compare(std::size_t first, std::span<const Tid> tids, std::span<float> rows,
                            const CancelToken* cancel, ThreadPool& pool)
{
    std::vector<std::uint64_t> numbers(tids.size());
    std::ranges::transform(tids, numbers.begin(), number_of);
    for (std::size_t i = 0; i < tids.size(); ++i) {
        const auto at = std::ranges::lower_bound(tids_, numbers[i]);
        if (at == tids_.end() || *at != numbers[i]) continue;
        own_[static_cast<std::size_t>(at - tids_.begin())] = static_cast<std::uint32_t>(first + i);
    }
    std::vector<float> norms(tids.size());
    pool.parallel_for(tids.size(), streamed_tile_rows, [&](std::size_t begin, std::size_t end) {
        float* const own = rows.data() + begin * dimensions_;
        for (std::size_t i = 0; i < (end - begin) * dimensions_; ++i) own[i] -= origin_[i % dimensions_];
        squared_norms(own, end - begin, dimensions_, norms.data() + begin);
    });
    pool.parallel_for(groups_.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t group = begin; group < end; ++group) {
            const std::lock_guard lock(groups_[group].mutex);
            for (std::size_t row = 0; row < tids.size(); row += streamed_tile_rows) {
                if (cancel != nullptr) cancel->check();
                const std::size_t count = std::min(streamed_tile_rows, tids.size() - row);
                compare_tile(group, first + row, std::span(numbers).subspan(row, count),
                             rows.data() + row * dimensions_, norms.data() + row);
            }
        }
    });
}

void StreamedTruth::compare_tile(std::size_t group, std::size_t first, std::span<const std::uint64_t> tids,
                                 const float* rows, const float* norms)
{
    Group& own = groups_[group];
    own.tile.resize(own.nearest.size() * tids.size());
    score_tile(metric_, moved_.data() + group * queries_of_group * dimensions_, own.nearest.size(), rows, norms,
               tids.size(), dimensions_, own.tile.data());
    for (std::size_t q = 0; q < own.nearest.size(); ++q)
        own.nearest[q].push(own.tile.data() + q * tids.size(), tids.data(), tids.size(),
                            static_cast<std::uint32_t>(first));
}

std::vector<std::uint32_t> StreamedTruth::neighbours(std::size_t query, std::span<const std::uint32_t> place_of)
{
    std::vector<std::uint32_t> rows;
    for (const auto& one : groups_[query / queries_of_group].nearest[query % queries_of_group].take()) {
        if (one.number != own_[query] && rows.size() < wanted) rows.push_back(place_of[one.number]);
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
