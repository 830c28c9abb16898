// Exact search of a mirror's delta rows: dense rows by canonical distance, others by their method's own comparison.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/filter/tid_bitmap.h"
#include "engine/mirror/mirror.h"

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

// NaN (the cosine of a zero vector) comes last.
inline double ordered_distance(double distance)
{
    return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

inline bool is_after(double distance, std::uint64_t ordinal, const SearchCursor& cursor)
{
    return distance != cursor.distance ? distance > cursor.distance : ordinal > cursor.ordinal;
}

// Query i of a batch, as one row.
inline RowView query_of(const Mirror& mirror, const SearchBatch& batch, std::size_t i)
{
    if (batch.lists.offsets != nullptr) return batch.lists.row(i);
    const std::size_t dimensions = mirror.shape().dimensions;
    return dense_rows(batch.queries.data() + i * dimensions, 1, dimensions);
}

// Width of the lower bounds of this query: a distance exceeds its bound by at most this. 0 where values are distances.
inline double bound_width_of(const Mirror& mirror, const RowView& query)
{
    return query.values == nullptr ? 0 : mirror.searcher().bound_width(query.values);
}

// The delta rows that a search may find: those that pass a predicate and have an address of a bitmap, where given.
struct DeltaFilter {
    std::span<const std::uint64_t> predicate = {};  // empty: all pass
    const TidBitmap* tids = nullptr;

    bool empty() const { return predicate.empty() && tids == nullptr; }
    bool passes(const RowView& rows, std::size_t i, const Tid& tid) const
    {
        if (tids != nullptr && !tids->contains(tid)) return false;
        return predicate.empty() || pgwarp::passes(predicate, rows.attributes + i * rows.attribute_count);
    }
};

// Which delta rows are compared one by one: all, or those that no part holds.
enum class DeltaRows { all, in_no_part };

// Puts the k nearest live rows of those into `found`, sorted, with values of the kind that the searcher gives:
// distances, or lower bounds of them.
void search_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const RowView& query,
                  std::size_t k, const CancelToken* cancel, ThreadPool& pool, std::vector<Found>& found,
                  const DeltaFilter& filter = {});

// The number of delta rows that pass, dead ones too.
std::uint64_t count_passing(const MirrorSnapshot& snapshot, const DeltaFilter& filter);

// [part][query]: the rows that each part of the snapshot proposes, its k nearest.
using PartProposals = std::vector<std::vector<std::vector<RowResult>>>;

// Searches the parts. rows: results of the index for each query, or none yet; parts may leave out rows that are not
// among the k nearest beside these.
void propose_in_parts(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                      const std::vector<std::vector<RowResult>>& rows, ThreadPool& pool, PartProposals& proposals);

// found[i] gets the proposals for query i that can be among the k nearest beside `rows`, the results of the index;
// unsorted.
void rank_in_parts(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                   const std::vector<std::vector<RowResult>>& rows, const PartProposals& proposals, ThreadPool& pool,
                   std::vector<std::vector<Found>>& found);

// Keeps the k nearest, sorted.
void keep_nearest(std::vector<Found>& found, std::size_t k);

// The k nearest of the delta rows after the cursor.
void search_delta_after(const Mirror& mirror, const MirrorSnapshot& snapshot, const RowView& query, std::size_t k,
                        const SearchCursor& cursor, const CancelToken* cancel, std::vector<Found>& found,
                        const DeltaFilter& filter = {});

}  // namespace pgwarp
