// The number of hash functions that an error and its probability ask for (GENIE, equation 7). Inline, because
// descriptions are compiled into binaries without the method.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "protocol/similarity.h"

namespace pgwarp::matchcount
{

// Of an index, as the options give it or epsilon and delta ask for.
inline constexpr std::size_t fewest_hashes = 8;
inline constexpr std::size_t most_hashes = 1024;
inline constexpr double usual_epsilon = 0.06;

// Returns the least probability, over all similarities s, that the count c of `functions` functions that collide with
// probability s each lies within floor((s - epsilon) m) and ceil((s + epsilon) m), m = functions.
//
// Between two similarities at which a bound jumps, both are constant, and the probability has its minimum at an end. At
// s = epsilon + i / m the bounds are i and i + ceil(2 epsilon m); the other jumps are the same mirrored.
inline double least_coverage(std::size_t functions, double epsilon)
{
    const auto m = static_cast<double>(functions);
    const double width = std::ceil(2 * epsilon * m - 1e-9);
    double least = 1;
    for (double first = std::ceil(-epsilon * m); first <= std::floor((1 - epsilon) * m); ++first) {
        const double s = std::min(1.0, epsilon + first / m);
        if (s <= 0 || s >= 1) continue;
        const double from = std::max(0.0, first);
        const double to = std::min(m, first + width);
        // From the likeliest count, whose probability does not underflow, outwards.
        const double middle = std::clamp(std::floor(s * m), from, to);
        const double likeliest = std::exp(std::lgamma(m + 1) - std::lgamma(middle + 1) - std::lgamma(m - middle + 1) +
                                          middle * std::log(s) + (m - middle) * std::log1p(-s));
        const double odds = s / (1 - s);
        double covered = likeliest;
        double term = likeliest;
        for (double c = middle; c < to; ++c) covered += term *= (m - c) / (c + 1) * odds;
        term = likeliest;
        for (double c = middle; c > from; --c) covered += term *= c / (m - c + 1) / odds;
        least = std::min(least, covered);
    }
    return least;
}

// Returns the least number of functions such that for it and for every larger number equation 7 is at least 1 - delta
// for all similarities. Returns most_hashes + 1 where more are needed.
inline std::size_t hash_count(double epsilon, double delta)
{
    if (least_coverage(most_hashes, epsilon) < 1 - delta) return most_hashes + 1;
    // From Hoeffding's bound on it holds.
    auto functions = static_cast<std::size_t>(std::ceil(std::log(2 / delta) / (2 * epsilon * epsilon)));
    while (functions > fewest_hashes && least_coverage(functions - 1, epsilon) >= 1 - delta) --functions;
    return functions > most_hashes ? most_hashes + 1 : functions;
}

}  // namespace pgwarp::matchcount
