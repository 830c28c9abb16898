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

// Returns the error that a similarity estimated by this number of hash functions exceeds with a probability of 0.06 at
// most, by the normal approximation at the similarity where it is largest: 0.06 for the usual number.
inline double error_of_count(double functions)
{
    return 0.94 / std::sqrt(functions);
}

// Returns the similarity to a query from which a row stands out, given the quartiles of the similarities of all rows:
// it is beyond the upper fence of a box plot (Tukey) by twice the error of an estimate. Two estimates may err, one up
// and one down (GENIE, theorem 5.2). An equal row always stands out.
inline double standing_out_similarity(double first_quartile, double third_quartile, double functions)
{
    const double fence = third_quartile + 1.5 * (third_quartile - first_quartile);
    return std::min(1.0, fence + 2 * error_of_count(functions));
}

}  // namespace pgwarp
