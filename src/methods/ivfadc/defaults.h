// The numbers that options of ivfadc resolve to where they are not given. Inline, because estimates are compiled into
// binaries without the method.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace pgwarp::ivfadc
{

// About four dimensions a subquantizer, and no more than 128 bytes of code.
inline std::size_t choose_subquantizers(std::size_t dimensions)
{
    return std::clamp<std::size_t>(dimensions / 4, 1, 128);
}

// Lists hold about half the square root of the rows: small tables get few lists, large ones many short ones.
inline std::size_t choose_lists(std::size_t rows)
{
    const auto lists = static_cast<std::size_t>(2 * std::sqrt(static_cast<double>(rows)));
    return std::clamp<std::size_t>(lists, 1, 16384);
}

}  // namespace pgwarp::ivfadc
