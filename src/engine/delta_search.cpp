#include "engine/delta_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/vectors.h"
#include "index/bounds.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

// Calls visit(first position, tids, vectors, rows) for the chunks of a log.
template <class Visit>
void for_each_chunk(const DeltaView& log, Visit&& visit)
{
    std::uint64_t position = log.start;
    for (const auto& chunk : log.chunks) {
        const std::uint64_t rows = std::min<std::uint64_t>(chunk->capacity, log.end - position);
        if (rows == 0) return;
        visit(position, chunk->tids.get(), chunk->vectors.get(), static_cast<std::size_t>(rows));
        position += rows;
    }
}

// Walks along sorted dead positions beside ascending positions.
class DeadWalk
{
public:
    explicit DeadWalk(const std::vector<std::uint64_t>& dead) : dead_(dead) {}
    bool is_dead(std::uint64_t position)
    {
        while (at_ < dead_.size() && dead_[at_] < position) ++at_;
        return at_ < dead_.size() && dead_[at_] == position;
    }

private:
    const std::vector<std::uint64_t>& dead_;
    std::size_t at_ = 0;
};

double result_distance(const Mirror& mirror, const float* query, const float* row)
{
    const double distance = canonical_distance(mirror.metric(), query, row, mirror.shape().dimensions);
    // Beside lower bounds of rows that were rounded when normalised, the delta's, rounded alike, are bounded alike.
    const bool bound = mirror.metric() == Metric::cosine && mirror.searcher().result_kind() == ResultKind::lower_bound;
    return ordered_distance(bound ? lower_bound(Metric::cosine, distance, 0, 1) : distance);
}

// Scores of all delta rows, log after log; +infinity for dead ones. Returns the bound on any score's error.
float propose(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, const CancelToken* cancel,
              std::vector<float>& out)
{
    const std::size_t dimensions = mirror.shape().dimensions;
    const float query_norm = bound_norm(mirror.metric(), {query, dimensions});
    float error = 0;
    out.resize(snapshot.delta_rows());
    float* at = out.data();
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        const DeltaView& view = snapshot.logs[log];
        if (view.rows() == 0) continue;
        error = std::max(error, score_error_bound(mirror.metric(), dimensions, query_norm, view.max_norm));
        DeadWalk dead(snapshot.dead->log_entries[log]);
        for_each_chunk(view, [&](std::uint64_t position, const Tid*, const float* vectors, std::size_t rows) {
            if (cancel != nullptr) cancel->check();
            scores(mirror.metric(), query, vectors, rows, dimensions, at);
            // An overflow proves nothing: the row stays a candidate.
            for (std::size_t i = 0; i < rows; ++i) {
                if (std::isnan(at[i])) at[i] = -std::numeric_limits<float>::infinity();
            }
            if (!snapshot.dead->log_entries[log].empty()) {
                for (std::size_t i = 0; i < rows; ++i) {
                    if (dead.is_dead(position + i)) at[i] = std::numeric_limits<float>::infinity();
                }
            }
            at += rows;
        });
    }
    return error;
}

void keep_nearest(std::vector<Found>& found, std::size_t k)
{
    if (found.size() > k) {
        std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k), found.end());
        found.resize(k);
    }
    std::sort(found.begin(), found.end());
}

}  // namespace

void search_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, std::size_t k,
                  const CancelToken* cancel, std::vector<Found>& found)
{
    found.clear();
    if (snapshot.delta_rows() == 0 || k == 0) return;
    thread_local std::vector<float> proposed;
    thread_local std::vector<float> ordered;
    const float error = propose(mirror, snapshot, query, cancel, proposed);
    // A row among the true k nearest scores at most 2 errors above the k-th best score. (A limit that is NaN keeps
    // all.)
    float limit = std::numeric_limits<float>::infinity();
    if (proposed.size() > k) {
        ordered = proposed;
        const auto kth = ordered.begin() + static_cast<std::ptrdiff_t>(k) - 1;
        std::nth_element(ordered.begin(), kth, ordered.end());
        limit = *kth + 2 * error;
    }
    const std::size_t dimensions = mirror.shape().dimensions;
    std::size_t at = 0;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        DeadWalk dead(snapshot.dead->log_entries[log]);
        for_each_chunk(snapshot.logs[log],
                       [&](std::uint64_t position, const Tid* tids, const float* vectors, std::size_t rows) {
                           if (cancel != nullptr) cancel->check();
                           for (std::size_t i = 0; i < rows; ++i, ++at) {
                               if (proposed[at] > limit || dead.is_dead(position + i)) continue;
                               found.push_back({result_distance(mirror, query, vectors + i * dimensions),
                                                delta_ordinal(log, position + i), tids[i]});
                           }
                       });
    }
    keep_nearest(found, k);
}

void search_delta_after(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, std::size_t k,
                        const SearchCursor& cursor, const CancelToken* cancel, std::vector<Found>& found)
{
    found.clear();
    const std::size_t dimensions = mirror.shape().dimensions;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        DeadWalk dead(snapshot.dead->log_entries[log]);
        for_each_chunk(snapshot.logs[log],
                       [&](std::uint64_t position, const Tid* tids, const float* vectors, std::size_t rows) {
                           if (cancel != nullptr) cancel->check();
                           for (std::size_t i = 0; i < rows; ++i) {
                               if (dead.is_dead(position + i)) continue;
                               const double distance = result_distance(mirror, query, vectors + i * dimensions);
                               const std::uint64_t ordinal = delta_ordinal(log, position + i);
                               if (is_after(distance, ordinal, cursor)) found.push_back({distance, ordinal, tids[i]});
                           }
                       });
        // Bounded memory however large the delta is.
        if (found.size() > 4 * k) keep_nearest(found, k);
    }
    keep_nearest(found, k);
}

}  // namespace pgwarp
