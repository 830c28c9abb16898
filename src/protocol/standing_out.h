// Rows that stand out for a query, in an index of sets with signatures. Its recall is measured over these rows alone:
// match counts hardly tell other rows from the many that are about as far from the query.
#pragma once

#include <algorithm>
#include <cmath>

namespace pgwarp
{

// Effective options of such an index, from the last measurement: the number of sampled rows for which other rows stood
// out, and the median of the distances, in millionths, within which rows did.
inline constexpr char option_standing_out[] = "standing_out";
inline constexpr char option_standing_within[] = "standing_within";

// Values of a hash function: two sets without a common element agree on one with a probability of 1 / this.
inline constexpr double standing_out_values = 254;

// Returns the similarity to a query from which a row stands out, given the quartiles of the similarities of all rows
// and the number of hash functions. The share of functions on which a row agrees with the query, less three standard
// errors, then exceeds that of a row at the upper fence of a box plot (Tukey), plus three of its own. An equal row
// always stands out.
inline double standing_out_similarity(double first_quartile, double third_quartile, double functions)
{
    const auto share_of = [](double similarity) { return similarity + (1 - similarity) / standing_out_values; };
    const double fence = share_of(std::min(1.0, third_quartile + 1.5 * (third_quartile - first_quartile)));
    const double errors = 9 / functions;  // the square of three, over the number that the variance is divided by
    const double above = fence + std::sqrt(errors * fence * (1 - fence));
    if (above >= 1) return 1;
    // The larger solution of (share - above)^2 = errors share (1 - share).
    const double sum = 2 * above + errors;
    const double root = std::sqrt(std::max(0.0, sum * sum - 4 * (1 + errors) * above * above));
    const double share = (sum + root) / (2 * (1 + errors));
    return std::min(1.0, (share * standing_out_values - 1) / (standing_out_values - 1));
}

}  // namespace pgwarp
