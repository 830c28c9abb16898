// The numbers that options of pqtree resolve to where they are not given. Inline, because estimates are compiled into
// binaries without the method.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "methods/pqtree/description.h"

namespace pgwarp::pqtree
{

inline constexpr std::size_t usual_parts = 2;
inline constexpr std::size_t usual_level1 = 64;
inline constexpr double most_bins_by_default = 0.4;
inline constexpr std::size_t line_dimensions = 8;
inline constexpr std::size_t usual_line_parts = 128;  // at most

// As many leaves as make this number of bins a row.
inline double leaves_for(double bins_per_row, std::size_t rows, std::size_t parts)
{
    return std::pow(std::max(bins_per_row * static_cast<double>(rows), 4.0),
                    1.0 / static_cast<double>(std::max<std::size_t>(parts, 2)));
}

inline std::size_t choose_level1(double leaves)
{
    return std::clamp<std::size_t>(static_cast<std::size_t>(leaves / 2), 2, usual_level1);
}

// Of two parts as many leaves as make no more bins than that; of other numbers of parts about one bin a row.
inline std::size_t choose_level2(std::size_t rows, std::size_t parts, std::size_t k1)
{
    const auto level1 = static_cast<double>(k1);
    const double wanted = parts == usual_parts ? std::floor(leaves_for(most_bins_by_default, rows, parts) / level1)
                                               : std::round(leaves_for(1, rows, parts) / level1);
    return std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, std::min(most_level2, most_leaves / k1));
}

// A multiple of the parts, with no piece without dimensions.
inline std::size_t choose_line_parts(std::size_t dimensions, std::size_t parts)
{
    const std::size_t wanted = std::min((dimensions + line_dimensions - 1) / line_dimensions, usual_line_parts);
    const std::size_t most = dimensions / parts * parts;
    return std::clamp((wanted + parts - 1) / parts * parts, parts, most);
}

}  // namespace pgwarp::pqtree
