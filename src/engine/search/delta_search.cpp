// Delta rows compared one by one, and the ranking of rows that parts propose.
#include "engine/search/delta_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/mirror/vectors.h"
#include "methods/bounds.h"
#include "numeric/distance.h"
#include "numeric/parallel.h"
#include "protocol/predicates.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t rank_grain = 16;  // queries whose proposals a thread ranks at a time
constexpr std::size_t value_grain = 8;  // rows of one query whose values a thread takes at a time
constexpr std::size_t prefetched = 3;   // vectors requested ahead of their comparison
constexpr std::uint64_t piece_bytes = std::uint64_t{64} << 10;  // of rows that a method compares at a time
// For fewer bytes the caller works alone: contiguous rows are read fast, and rows compared just now are in the cache.
constexpr std::size_t parallel_compare_bytes = std::size_t{2} << 20;
constexpr std::size_t parallel_value_bytes = std::size_t{256} << 10;

// Walks along sorted dead positions beside ascending positions.
class DeadWalk
{
public:
    explicit DeadWalk(const std::vector<std::uint64_t>& dead, std::uint64_t from = 0)
        : dead_(dead), at_(static_cast<std::size_t>(std::lower_bound(dead.begin(), dead.end(), from) - dead.begin()))
    {
    }
    bool is_dead(std::uint64_t position)
    {
        while (at_ < dead_.size() && dead_[at_] < position) ++at_;
        return at_ < dead_.size() && dead_[at_] == position;
    }

private:
    const std::vector<std::uint64_t>& dead_;
    std::size_t at_;
};

// Whether rows of a chunk, in ascending order, are left out: dead ones, and those that fail a filter.
class LeftOut
{
public:
    LeftOut(const MirrorSnapshot& snapshot, std::uint32_t log, std::uint64_t position, const RowView& rows,
            const Tid* tids, const DeltaFilter& filter)
        : dead_(snapshot.dead->log_entries[log], position),
          position_(position),
          rows_(rows),
          tids_(tids),
          filter_(filter)
    {
    }
    bool operator()(std::size_t i) { return dead_.is_dead(position_ + i) || !filter_.passes(rows_, i, tids_[i]); }

private:
    DeadWalk dead_;
    std::uint64_t position_;
    const RowView& rows_;
    const Tid* tids_;
    const DeltaFilter& filter_;
};

// Values of delta rows for one query. Where the index gives lower bounds, these lie half their width below its estimate
// of the distance. Delta rows get values that lie as far below their distance: else rows of the index would come before
// nearer delta rows.
class Values
{
public:
    Values(const Mirror& mirror, const RowView& query) : mirror_(mirror), query_(query)
    {
        if (mirror.searcher().result_kind() == ResultKind::lower_bound) shift_ = bound_width_of(mirror, query) / 2;
    }
    // The value of a dense row, by the metric.
    double of(const float* row) const
    {
        const double distance = canonical_distance(mirror_.metric(), query_.values, row, mirror_.shape().dimensions);
        if (shift_ == 0) return ordered_distance(distance);
        const double bound = distance - std::fabs(distance) * bound_rounding - shift_;
        return ordered_distance(mirror_.metric() == Metric::l2 ? std::max(0.0, bound) : bound);
    }
    // Calls take_value(i, value) for the rows, of any layout, that are not left out. The metric gives the value, or the
    // comparison of the method.
    template <class LeavesOut, class Take>
    void take(const RowView& rows, LeavesOut&& leaves_out, Take&& take_value) const
    {
        const bool by_method = mirror_.searcher().compares_rows();
        for (std::size_t begin = 0; begin < rows.count;) {
            std::size_t end = begin;
            while (end < rows.count && !leaves_out(end)) ++end;
            by_method ? take_compared(rows, begin, end, take_value) : take_measured(rows, begin, end, take_value);
            begin = end + 1;
        }
    }

private:
    // Rows [begin, end) by the comparison of the method.
    template <class Take>
    void take_compared(const RowView& rows, std::size_t begin, std::size_t end, Take&& take_value) const
    {
        if (begin == end) return;
        thread_local std::vector<double> compared;
        compared.resize(end - begin);
        mirror_.searcher().compare_rows(query_, rows.slice(begin, end - begin), compared);
        for (std::size_t i = begin; i < end; ++i) take_value(i, ordered_distance(compared[i - begin]));
    }
    // The same by the metric.
    template <class Take>
    void take_measured(const RowView& rows, std::size_t begin, std::size_t end, Take&& take_value) const
    {
        for (std::size_t i = begin; i < end; ++i) take_value(i, of(rows.values + i * rows.width));
    }

    const Mirror& mirror_;
    const RowView query_;
    double shift_ = 0;
};

std::uint64_t first_of(const MirrorSnapshot& snapshot, DeltaRows which, std::uint32_t log)
{
    return which == DeltaRows::all ? snapshot.logs[log].start : snapshot.first_plain(log);
}

// Contiguous rows of a log.
struct Stretch {
    std::uint32_t log;
    std::uint64_t position;  // of the first in its log
    const Tid* tids;
    RowView rows;
    std::size_t number;  // of the first among all that are compared
};

// The rows, log after log, in stretches that a thread takes at a time.
std::vector<Stretch> stretches_of(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which)
{
    const std::size_t most = items_at_a_time(static_cast<std::size_t>(mirror.row_values()) * sizeof(float));
    std::vector<Stretch> stretches;
    std::size_t number = 0;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        const auto add = [&](std::uint64_t position, const Tid* tids, const RowView& rows) {
            for (std::size_t at = 0; at < rows.count; at += most) {
                const std::size_t count = std::min(most, rows.count - at);
                stretches.push_back({log, position + at, tids + at, rows.slice(at, count), number});
                number += count;
            }
        };
        for_each_chunk(snapshot.logs[log], first_of(snapshot, which, log), add);
    }
    return stretches;
}

// Scores of those rows of a stretch that pass; +infinity for the others, and for dead ones.
void score_passing(const Mirror& mirror, const MirrorSnapshot& snapshot, const Stretch& stretch, const float* query,
                   const DeltaFilter& filter, float* out)
{
    const std::size_t dimensions = mirror.shape().dimensions;
    LeftOut left_out(snapshot, stretch.log, stretch.position, stretch.rows, stretch.tids, filter);
    for (std::size_t i = 0; i < stretch.rows.count; ++i) {
        out[i] = std::numeric_limits<float>::infinity();
        if (left_out(i)) continue;
        out[i] = score(mirror.metric(), query, stretch.rows.values + i * dimensions, dimensions);
        if (std::isnan(out[i])) out[i] = -std::numeric_limits<float>::infinity();
    }
}

// Scores of a stretch; +infinity for dead rows.
void score_stretch(const Mirror& mirror, const MirrorSnapshot& snapshot, const Stretch& stretch, const float* query,
                   float* out)
{
    const std::size_t rows = stretch.rows.count;
    scores(mirror.metric(), query, stretch.rows.values, rows, mirror.shape().dimensions, out);
    // An overflow proves nothing: the row stays a candidate.
    for (std::size_t i = 0; i < rows; ++i) {
        if (std::isnan(out[i])) out[i] = -std::numeric_limits<float>::infinity();
    }
    if (snapshot.dead->log_entries[stretch.log].empty()) return;
    DeadWalk dead(snapshot.dead->log_entries[stretch.log], stretch.position);
    for (std::size_t i = 0; i < rows; ++i) {
        if (dead.is_dead(stretch.position + i)) out[i] = std::numeric_limits<float>::infinity();
    }
}

// The bound on the error of any row's score.
float error_of_scores(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const float* query)
{
    const std::size_t dimensions = mirror.shape().dimensions;
    const float query_norm = bound_norm(mirror.metric(), {query, dimensions});
    float error = 0;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        const DeltaView& view = snapshot.logs[log];
        if (view.end == first_of(snapshot, which, log)) continue;
        error = std::max(error, score_error_bound(mirror.metric(), dimensions, query_norm, view.max_norm));
    }
    return error;
}

// The largest score of a row that can be among the k nearest: 2 errors above the k-th best. (NaN keeps all.)
float farthest_score(const std::vector<float>& scores, std::size_t k, float error)
{
    if (scores.size() <= k) return std::numeric_limits<float>::infinity();
    thread_local std::vector<float> ordered;
    ordered = scores;
    const auto kth = ordered.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(ordered.begin(), kth, ordered.end());
    return *kth + 2 * error;
}

// Sets the distance of found[first + i] to the value of vectors[i].
void take_values(const Values& values, const std::vector<const float*>& vectors, std::size_t dimensions,
                 std::size_t first, ThreadPool& pool, std::vector<Found>& found)
{
    const bool few = vectors.size() * dimensions * sizeof(float) < parallel_value_bytes;
    ThreadPool& workers = few ? caller_alone() : pool;
    workers.parallel_for(vectors.size(), value_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (i + prefetched < vectors.size()) prefetch_vector(vectors[i + prefetched], dimensions);
            found[first + i].distance = values.of(vectors[i]);
        }
    });
}

}  // namespace

void keep_nearest(std::vector<Found>& found, std::size_t k)
{
    if (found.size() > k) {
        std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k), found.end());
        found.resize(k);
    }
    std::sort(found.begin(), found.end());
}

namespace
{

// Adds the live rows of a stretch that pass, with their values.
void add_compared(const MirrorSnapshot& snapshot, const Stretch& stretch, const Values& values,
                  const DeltaFilter& filter, std::vector<Found>& found)
{
    values.take(stretch.rows, LeftOut(snapshot, stretch.log, stretch.position, stretch.rows, stretch.tids, filter),
                [&](std::size_t i, double distance) {
                    found.push_back({distance, delta_ordinal(stretch.log, stretch.position + i), stretch.tids[i]});
                });
}

// The rows of a stretch from `first` on that are compared between two looks at the cancel token.
Stretch piece_of(const Stretch& stretch, std::size_t first)
{
    const RowView rest = stretch.rows.slice(first, stretch.rows.count - first);
    const std::size_t count = std::max<std::size_t>(rows_within(rest, piece_bytes), 1);
    return {stretch.log, stretch.position + first, stretch.tids + first, rest.slice(0, count), stretch.number + first};
}

// All rows compared by the method: no cheaper score tells the rows that can be left out.
void search_by_comparison(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const RowView& query,
                          std::size_t k, const CancelToken* cancel, const DeltaFilter& filter,
                          std::vector<Found>& found)
{
    const Values values(mirror, query);
    for (const Stretch& stretch : stretches_of(mirror, snapshot, which)) {
        for (std::size_t first = 0; first < stretch.rows.count;) {
            if (cancel != nullptr) cancel->check();
            const Stretch piece = piece_of(stretch, first);
            add_compared(snapshot, piece, values, filter, found);
            first += piece.rows.count;
        }
        // Bounds the memory for a delta of any size.
        if (found.size() > 4 * k) keep_nearest(found, k);
    }
    keep_nearest(found, k);
}

// Dense rows: fast scores leave few candidates, which are ranked by the canonical distance.
void search_by_metric(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const RowView& query,
                      std::size_t k, const CancelToken* cancel, ThreadPool& pool, const DeltaFilter& filter,
                      std::vector<Found>& found)
{
    const std::size_t rows = which == DeltaRows::all ? snapshot.delta_rows() : snapshot.plain_rows();
    const std::size_t dimensions = mirror.shape().dimensions;
    const std::vector<Stretch> stretches = stretches_of(mirror, snapshot, which);
    thread_local std::vector<float> own_scores;
    std::vector<float>& scores = own_scores;  // of this thread, filled by threads of the pool
    scores.resize(rows);
    ThreadPool& workers = rows * dimensions * sizeof(float) < parallel_compare_bytes ? caller_alone() : pool;
    workers.parallel_for(stretches.size(), 1, [&](std::size_t begin, std::size_t) {
        if (cancel != nullptr) cancel->check();
        const Stretch& stretch = stretches[begin];
        float* const out = scores.data() + stretch.number;
        if (!filter.empty()) return score_passing(mirror, snapshot, stretch, query.values, filter, out);
        score_stretch(mirror, snapshot, stretch, query.values, out);
    });
    const float limit = farthest_score(scores, k, error_of_scores(mirror, snapshot, which, query.values));
    std::vector<const float*> vectors;
    for (const Stretch& stretch : stretches) {
        LeftOut left_out(snapshot, stretch.log, stretch.position, stretch.rows, stretch.tids, filter);
        for (std::size_t i = 0; i < stretch.rows.count; ++i) {
            if (scores[stretch.number + i] > limit || left_out(i)) continue;
            found.push_back({0, delta_ordinal(stretch.log, stretch.position + i), stretch.tids[i]});
            vectors.push_back(stretch.rows.values + i * dimensions);
        }
    }
    take_values(Values(mirror, query), vectors, dimensions, 0, workers, found);
    keep_nearest(found, k);
}

}  // namespace

void search_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const RowView& query,
                  std::size_t k, const CancelToken* cancel, ThreadPool& pool, std::vector<Found>& found,
                  const DeltaFilter& filter)
{
    found.clear();
    const std::size_t rows = which == DeltaRows::all ? snapshot.delta_rows() : snapshot.plain_rows();
    if (rows == 0 || k == 0) return;
    if (mirror.searcher().compares_rows())
        return search_by_comparison(mirror, snapshot, which, query, k, cancel, filter, found);
    search_by_metric(mirror, snapshot, which, query, k, cancel, pool, filter, found);
}

std::uint64_t count_passing(const MirrorSnapshot& snapshot, const DeltaFilter& filter)
{
    std::uint64_t count = 0;
    for (const DeltaView& log : snapshot.logs) {
        for_each_chunk(log, log.start, [&](std::uint64_t, const Tid* tids, const RowView& rows) {
            for (std::size_t i = 0; i < rows.count; ++i) count += filter.passes(rows, i, tids[i]) ? 1 : 0;
        });
    }
    return count;
}

namespace
{

// k times the refine factor, where a setting gives one.
std::uint32_t refined_rows(const SearchBatch& batch)
{
    const std::int64_t factor = std::clamp<std::int64_t>(batch.settings.get("refine_factor", 0), 0, max_k);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch.k * static_cast<std::uint64_t>(factor), max_k));
}

// The largest distance of a row that can be among the k nearest, beside these results of the index.
double reach_beside(const Mirror& mirror, const RowView& query, const std::vector<RowResult>& rows, std::size_t k)
{
    if (rows.size() < k || std::isnan(rows.back().distance)) return std::numeric_limits<double>::infinity();
    return rows.back().distance + bound_width_of(mirror, query);
}

std::vector<double> reaches(const Mirror& mirror, const SearchBatch& batch,
                            const std::vector<std::vector<RowResult>>& in_index)
{
    std::vector<double> reach(batch.count, std::numeric_limits<double>::infinity());
    if (!mirror.searcher().values_are_distances()) return reach;
    for (std::size_t i = 0; i < batch.count; ++i)
        reach[i] = reach_beside(mirror, query_of(mirror, batch, i), in_index[i], batch.k);
    return reach;
}

// Adds the proposals of a part for a query, with values; skips proposals whose own values are beyond `reach`.
void rank_of_part(const DeltaPart& part, const std::vector<RowResult>& proposed, const Values& values, double reach,
                  std::size_t dimensions, ThreadPool& pool, std::vector<Found>& found)
{
    std::size_t within = proposed.size();
    if (part.proposes_values) {
        // Proposals are sorted by value.
        while (within > 0 && proposed[within - 1].distance > reach) --within;
    }
    for (std::size_t at = 0; at < within; ++at) __builtin_prefetch(&part.rows[proposed[at].row]);
    const std::size_t first = found.size();
    std::vector<const float*> vectors;
    for (std::size_t at = 0; at < within; ++at) {
        const DeltaEntry& row = part.rows[proposed[at].row];
        found.push_back({0, row.ordinal, row.tid});
        if (part.list_rows.empty()) {
            vectors.push_back(row.vector);
            continue;
        }
        values.take(
            part.list_rows[proposed[at].row], [](std::size_t) { return false; },
            [&found](std::size_t, double distance) { found.back().distance = distance; });
    }
    if (part.list_rows.empty()) take_values(values, vectors, dimensions, first, pool, found);
}

}  // namespace

void propose_in_parts(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                      const std::vector<std::vector<RowResult>>& in_index, ThreadPool& pool, PartProposals& proposals)
{
    const std::vector<double> reach = reaches(mirror, batch, in_index);
    proposals.resize(std::max(proposals.size(), snapshot.parts.size()));
    for (std::size_t number = 0; number < snapshot.parts.size(); ++number) {
        const PartView& view = snapshot.parts[number];
        const DeltaPart& part = *view.part;
        SearchBatch own = batch;
        own.dead = view.dead != nullptr ? RowBitmap(*view.dead) : RowBitmap();
        own.dead_version = view.dead_version;
        own.proposals_will_do = true;
        own.reach = reach;
        // Of rounded proposals more than k are ranked by their vectors, at least as the refine factor says.
        if (part.searcher->result_kind() == ResultKind::approximate)
            own.k = std::max(batch.k + batch.k / 2 + 16, refined_rows(batch));
        if (part.searcher->result_kind() == ResultKind::lower_bound) own.k = batch.k + batch.k / 8 + 3;
        proposals[number].resize(batch.count);
        part.searcher->search(own, proposals[number], pool);
    }
}

void rank_in_parts(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                   const std::vector<std::vector<RowResult>>& in_index, const PartProposals& proposals,
                   ThreadPool& pool, std::vector<std::vector<Found>>& found)
{
    const std::size_t dimensions = mirror.shape().dimensions;
    const std::vector<double> reach = reaches(mirror, batch, in_index);
    pool.parallel_for(batch.count, rank_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const Values values(mirror, query_of(mirror, batch, i));
            found[i].clear();
            for (std::size_t number = 0; number < snapshot.parts.size(); ++number)
                rank_of_part(*snapshot.parts[number].part, proposals[number][i], values, reach[i], dimensions, pool,
                             found[i]);
        }
    });
}

void search_delta_after(const Mirror& mirror, const MirrorSnapshot& snapshot, const RowView& query, std::size_t k,
                        const SearchCursor& cursor, const CancelToken* cancel, std::vector<Found>& found,
                        const DeltaFilter& filter)
{
    found.clear();
    const Values values(mirror, query);
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        for_each_chunk(snapshot.logs[log], snapshot.logs[log].start,
                       [&](std::uint64_t position, const Tid* tids, const RowView& rows) {
                           if (cancel != nullptr) cancel->check();
                           const auto add = [&](std::size_t i, double distance) {
                               const std::uint64_t ordinal = delta_ordinal(log, position + i);
                               if (is_after(distance, ordinal, cursor)) found.push_back({distance, ordinal, tids[i]});
                           };
                           values.take(rows, LeftOut(snapshot, log, position, rows, tids, filter), add);
                       });
        // Bounds the memory for a delta of any size.
        if (found.size() > 4 * k) keep_nearest(found, k);
    }
    keep_nearest(found, k);
}

}  // namespace pgwarp
