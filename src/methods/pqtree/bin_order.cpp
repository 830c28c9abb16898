// The nearest bins as a set below a threshold.
#include "methods/pqtree/bin_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pgwarp
{

namespace
{

// A bin of some of the parts.
struct ScoredBin {
    float score;
    std::uint64_t bin;
};

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
// more are within. The first steps suppose that the number of sums grows as the square of the threshold, the others
// halve the interval.
template <class First, class Second>
Threshold find_threshold(const First& first, const Second& second, std::size_t least, std::size_t most)
{
    constexpr std::size_t guesses = 6;
    const float nearest = first.front().score + second.front().score;
    Threshold low{nearest, count_within(first, second, nearest)};
    Threshold high{first.back().score + second.back().score, first.size() * second.size()};
    if (low.count >= least) return low;
    const auto wanted = static_cast<float>(least + (most - least) / 2);
    const std::size_t rank = std::min({static_cast<std::size_t>(std::sqrt(wanted)), first.size(), second.size()}) - 1;
    float guess = first[rank / 2].score + second[rank / 2].score;
    for (std::size_t step = 0;; ++step) {
        float middle = low.score + (high.score - low.score) / 2;
        if (!(middle > low.score && middle < high.score)) return high;
        if (step < guesses && guess > low.score && guess < high.score) middle = guess;
        const Threshold found{middle, count_within(first, second, middle)};
        if (found.count >= least && found.count <= most) return found;
        (found.count < least ? low : high) = found;
        guess = nearest + (middle - nearest) * std::sqrt(wanted / static_cast<float>(found.count));
    }
}

// Finds the smallest sums of two ascending lists, as nearest_bins() does.
template <class First, class Second>
void smallest_sums(const First& first, const Second& second, std::size_t leaves_of_part, std::size_t least,
                   std::size_t most, NearestBins& bins)
{
    bins.runs.clear();
    bins.count = 0;
    if (first.empty() || second.empty() || least == 0) return;
    Threshold threshold{first.back().score + second.back().score, first.size() * second.size()};
    if (threshold.count > most) threshold = find_threshold(first, second, least, most);
    bins.farthest = threshold.score;
    for_sums_within(first, second, threshold.score, [&](std::size_t i, std::size_t end) {
        bins.runs.push_back({first[i].score, static_cast<std::uint32_t>(end), first[i].bin * leaves_of_part});
    });
    bins.count = threshold.count;
    // Where equal sums leave no number between, some of those at the threshold are left out, from the end on.
    for (std::size_t i = bins.runs.size(); threshold.count > most && i-- > 0;) {
        BinRun& run = bins.runs[i];
        while (bins.count > least && run.end > 0 && run.score + second[run.end - 1].score == threshold.score) {
            --run.end;
            --bins.count;
        }
    }
    std::erase_if(bins.runs, [](const BinRun& run) { return run.end == 0; });
}

}  // namespace

void nearest_bins(const RankedParts& parts, std::size_t leaves_of_part, std::size_t least, std::size_t most,
                  NearestBins& bins)
{
    // The bins of the parts so far, as one list: the smallest sums of all parts begin with some of them.
    std::vector<ScoredBin> before{{0, 0}};
    for (std::size_t part = 0; part < parts.size(); ++part) {
        const bool last = part + 1 == parts.size();
        smallest_sums(before, parts[part], leaves_of_part, last ? least : most, most, bins);
        if (last) return;
        before.clear();
        for (const BinRun& run : bins.runs) {
            for (std::size_t j = 0; j < run.end; ++j)
                before.push_back({run.score + parts[part][j].score, run.first + parts[part][j].leaf});
        }
        std::ranges::stable_sort(before, {}, &ScoredBin::score);
    }
}

}  // namespace pgwarp
