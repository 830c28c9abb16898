// Bins in order: by a priority queue, by slopes, and as a set below a threshold.
#include "methods/pqtree/bin_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>

namespace pgwarp
{

namespace
{

constexpr double slope_base = 1.08;
constexpr std::size_t first_slope = 5;  // the number of the slope 1

// Calls body(i, end) for the elements i of `first`, where elements [0, end) of `second` make a sum of at most
// `threshold` with it. Both ascend, so that `end` falls with i. Stops at the first i without such elements.
template <class First, class Second, class Body>
void for_sums_within(const First& first, const Second& second, float threshold, const Body& body)
{
    std::size_t end = second.size();
    for (std::size_t i = 0; i < first.size(); ++i) {
        while (end > 0 && !(first[i].score + second[end - 1].score <= threshold)) --end;
        if (end == 0) return;
        body(i, end);
    }
}

template <class First, class Second>
std::size_t count_within(const First& first, const Second& second, float threshold)
{
    std::size_t count = 0;
    for_sums_within(first, second, threshold, [&](std::size_t, std::size_t end) { count += end; });
    return count;
}

// A threshold, and the number of sums within it.
struct Threshold {
    float score;
    std::size_t count;
};

// Returns a threshold that between `least` and `most` sums are within; where equal sums leave none, the smallest that
// more are within.
template <class First, class Second>
Threshold find_threshold(const First& first, const Second& second, std::size_t least, std::size_t most)
{
    float low = first.front().score + second.front().score;
    Threshold high{first.back().score + second.back().score, first.size() * second.size()};
    const std::size_t nearest = count_within(first, second, low);
    if (nearest >= least) return {low, nearest};
    for (;;) {
        const float middle = low + (high.score - low) / 2;
        if (!(middle > low && middle < high.score)) return high;
        const std::size_t count = count_within(first, second, middle);
        if (count < least) {
            low = middle;
        } else {
            high = {middle, count};
            if (count <= most) return high;
        }
    }
}

// Appends the smallest sums of two ascending lists, as nearest_bins() does; bin_of(i, j) is the bin of a sum.
template <class First, class Second, class BinOf>
void smallest_sums(const First& first, const Second& second, std::size_t least, std::size_t most, const BinOf& bin_of,
                   std::vector<ScoredBin>& sums)
{
    if (first.empty() || second.empty() || least == 0) return;
    const std::size_t all = first.size() * second.size();
    Threshold threshold{first.back().score + second.back().score, all};
    if (all > most) threshold = find_threshold(first, second, least, most);
    const bool cut = threshold.count > most;
    std::size_t at = sums.size();
    sums.resize(at + (cut ? least : threshold.count));
    const auto put = [&](std::size_t i, std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j) sums[at++] = {first[i].score + second[j].score, bin_of(i, j)};
    };
    // Where equal sums leave no number between, those at the threshold come last, until there are enough.
    const auto nearer = [&](std::size_t i, std::size_t end) {
        while (cut && end > 0 && first[i].score + second[end - 1].score == threshold.score) --end;
        return end;
    };
    for_sums_within(first, second, threshold.score, [&](std::size_t i, std::size_t end) { put(i, 0, nearer(i, end)); });
    if (!cut) return;
    for_sums_within(first, second, threshold.score, [&](std::size_t i, std::size_t end) {
        const std::size_t begin = nearer(i, end);
        put(i, begin, begin + std::min(end - begin, sums.size() - at));
    });
}

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

void nearest_bins(const RankedParts& parts, std::size_t leaves_of_part, std::size_t least, std::size_t most,
                  std::vector<ScoredBin>& bins)
{
    // The bins of the parts so far, as one list: the smallest sums of all parts begin with some of them.
    std::vector<ScoredBin> before;
    for (const RankedLeaf& leaf : parts.front()) before.push_back({leaf.score, leaf.leaf});
    for (std::size_t part = 1; part < parts.size(); ++part) {
        const bool last = part + 1 == parts.size();
        std::vector<ScoredBin> now;
        std::vector<ScoredBin>& sums = last ? bins : now;
        const auto bin_of = [&](std::size_t i, std::size_t j) {
            return before[i].bin * leaves_of_part + parts[part][j].leaf;
        };
        smallest_sums(before, parts[part], last ? least : most, most, bin_of, sums);
        if (last) return;
        std::ranges::stable_sort(now, {}, &ScoredBin::score);
        before = std::move(now);
    }
    before.resize(std::min(before.size(), most));
    bins.insert(bins.end(), before.begin(), before.end());
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

}  // namespace pgwarp
