// Orders of bins by a priority queue and by slopes.
#include "bin_orders.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

namespace pgwarp::bench::pqtree
{

namespace
{

constexpr double slope_base = 1.08;
constexpr std::size_t first_slope = 5;  // the number of the slope 1

}  // namespace

std::vector<BinRanks> dijkstra_order(const RankedParts& parts, std::size_t wanted)
{
    using Entry = std::pair<double, BinRanks>;
    const auto score = [&](const BinRanks& ranks) {
        double sum = 0;
        for (std::size_t part = 0; part < parts.size(); ++part) sum += double{parts[part][ranks[part]].score};
        return sum;
    };
    std::vector<BinRanks> order;
    for (const auto& part : parts)
        if (part.empty()) return order;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::set<BinRanks> queued{BinRanks{}};
    queue.push({score({}), {}});
    while (order.size() < wanted && !queue.empty()) {
        const BinRanks nearest = queue.top().second;
        queue.pop();
        order.push_back(nearest);
        for (std::size_t part = 0; part < parts.size(); ++part) {
            BinRanks next = nearest;
            if (++next[part] < parts[part].size() && queued.insert(next).second) queue.push({score(next), next});
        }
    }
    return order;
}

SlopeOrder::SlopeOrder(std::size_t ranks, std::size_t length)
{
    for (std::size_t number = 0; number < slopes; ++number) {
        // All pairs with ranks up to its own come before a pair, so those of the first `length` are few.
        const double s = slope(number);
        std::vector<std::pair<double, Pair>> keyed;
        for (std::size_t i = 0; i < ranks; ++i) {
            for (std::size_t j = 0; j < ranks && (i + 1) * (j + 1) <= length; ++j)
                keyed.push_back({std::sqrt(double(i)) / s + std::sqrt(double(j)) * s,
                                 {static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)}});
        }
        std::ranges::sort(keyed);
        if (keyed.size() > length) keyed.resize(length);
        for (const auto& one : keyed) orders_[number].push_back(one.second);
    }
}

double SlopeOrder::slope(std::size_t number)
{
    return std::pow(slope_base, static_cast<double>(number) - first_slope);
}

std::size_t SlopeOrder::choose(std::span<const RankedLeaf> first, std::span<const RankedLeaf> second)
{
    constexpr std::size_t fitted_rank = 32;
    const std::size_t rank = std::min({fitted_rank, first.size() - 1, second.size() - 1});
    const double growth = double{first[rank].score} - first[0].score;
    const double other = double{second[rank].score} - second[0].score;
    if (!(growth > 0 && other > 0)) return first_slope;
    // A part that grows faster weighs more, and the square of the slope is the quotient of the weights.
    const double number = std::log(other / growth) / (2 * std::log(slope_base)) + first_slope;
    return static_cast<std::size_t>(std::lround(std::clamp(number, 0.0, double{slopes - 1})));
}

}  // namespace pgwarp::bench::pqtree
