// Estimates of similarities: an index whose rows have signatures, the values of hash functions that collide with the
// probability of the similarity, tells it by the share of the functions that collide.
#pragma once

#include <cmath>

#include "protocol/parameters.h"

namespace pgwarp
{

// A setting of searches of such an index. 1: the values of the results are minus the share, and rows without a
// collision are left out. Values of delta rows stay distances, which are not negative.
inline constexpr char setting_estimate[] = "estimate";

// Effective options of such an index: the number of functions, and of those whose values are hashed again the number
// of these hashes, else 0.
inline constexpr char option_hashes[] = "hashes";
inline constexpr char option_rehashed[] = "rehashed";
// As the user gave it: the probability of a larger error, in millionths; 0: usual_delta.
inline constexpr char option_delta[] = "delta";
inline constexpr double usual_delta = 0.06;

// Returns the error that the estimate of a row exceeds with a probability of at most delta: Hoeffding's bound, half of
// that of GENIE's theorem 5.1, which adds the errors of collisions and of hashing again; the probability that two
// values are hashed to the same number comes on top.
inline double error_of_estimate(const ParameterList& effective, double delta)
{
    const auto hashes = static_cast<double>(effective.get(option_hashes, 1));
    const auto rehashed = static_cast<double>(effective.get(option_rehashed, 0));
    return std::sqrt(std::log(2 / delta) / (2 * hashes)) + (rehashed > 0 ? 1 / rehashed : 0);
}

}  // namespace pgwarp
