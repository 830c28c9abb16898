// Exact search of a mirror's delta rows by canonical distance.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/mirror.h"

namespace pgwarp
{

// A found row of an index or one of its delta logs; ordinal as in SearchCursor.
struct Found {
    double distance;
    std::uint64_t ordinal;
    Tid tid;
};

inline bool operator<(const Found& a, const Found& b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.ordinal < b.ordinal;
}

// NaN (the cosine of a zero vector) has no place in an order: it comes last.
inline double ordered_distance(double distance)
{
    return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

inline bool is_after(double distance, std::uint64_t ordinal, const SearchCursor& cursor)
{
    return distance != cursor.distance ? distance > cursor.distance : ordinal > cursor.ordinal;
}

inline constexpr std::uint64_t delta_ordinal(std::uint32_t log, std::uint64_t position)
{
    return (std::uint64_t{log + 1U} << 48) | position;
}

// Puts the k nearest live delta rows into `found`, sorted, with values of the searcher's kind: canonical distances, or
// for cosine lower bounds of them where the searcher gives those.
void search_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, std::size_t k,
                  const CancelToken* cancel, std::vector<Found>& found);

// The same for rows after the cursor.
void search_delta_after(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, std::size_t k,
                        const SearchCursor& cursor, const CancelToken* cancel, std::vector<Found>& found);

}  // namespace pgwarp
