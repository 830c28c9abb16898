#include "engine/search/delta_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/mirror/vectors.h"
#include "methods/bounds.h"
#include "numeric/distance.h"
#include "numeric/parallel.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t rank_grain = 16;  // queries whose proposals a thread ranks at a time
constexpr std::size_t value_grain = 8;  // rows of one query whose values a thread takes at a time
constexpr std::size_t prefetched = 3;   // rows that are on their way while the value of one is taken
// For fewer bytes no thread is woken: rows that lie together come fast, and so do those that were compared just now.
constexpr std::size_t compared_together = std::size_t{2} << 20;
constexpr std::size_t valued_together = std::size_t{256} << 10;

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

// Values of delta rows for one query. Beside lower bounds that lie half their width below what the index believes the
// distance to be, the delta's are set as far below the distance: else rows of the index would pass before nearer ones.
class Values
{
public:
    Values(const Mirror& mirror, const float* query) : mirror_(mirror), query_(query)
    {
        if (mirror.searcher().result_kind() == ResultKind::lower_bound)
            shift_ = mirror.searcher().bound_width(query) / 2;
    }
    double of(const float* row) const
    {
        const double distance = canonical_distance(mirror_.metric(), query_, row, mirror_.shape().dimensions);
        if (shift_ == 0) return ordered_distance(distance);
        const double bound = distance - std::fabs(distance) * bound_rounding - shift_;
        return ordered_distance(mirror_.metric() == Metric::l2 ? std::max(0.0, bound) : bound);
    }

private:
    const Mirror& mirror_;
    const float* query_;
    double shift_ = 0;
};

std::uint64_t first_of(const MirrorSnapshot& snapshot, DeltaRows which, std::uint32_t log)
{
    return which == DeltaRows::all ? snapshot.logs[log].start : snapshot.first_plain(log);
}

// Rows that lie one after the other.
struct Stretch {
    std::uint32_t log;
    std::uint64_t position;  // of the first in its log
    const Tid* tids;
    const float* vectors;
    std::size_t rows;
    std::size_t number;  // of the first among all that are compared
};

// The rows, log after log, so many at a time as a thread takes.
std::vector<Stretch> stretches_of(const MirrorSnapshot& snapshot, DeltaRows which, std::size_t dimensions)
{
    const std::size_t most = items_at_a_time(dimensions * sizeof(float));
    std::vector<Stretch> stretches;
    std::size_t number = 0;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        const auto add = [&](std::uint64_t position, const Tid* tids, const float* vectors, std::size_t rows) {
            for (std::size_t at = 0; at < rows; at += most) {
                const std::size_t count = std::min(most, rows - at);
                stretches.push_back({log, position + at, tids + at, vectors + at * dimensions, count, number});
                number += count;
            }
        };
        for_each_chunk(snapshot.logs[log], dimensions, first_of(snapshot, which, log), add);
    }
    return stretches;
}

// Scores of a stretch; +infinity for dead rows.
void score_stretch(const Mirror& mirror, const MirrorSnapshot& snapshot, const Stretch& stretch, const float* query,
                   float* out)
{
    scores(mirror.metric(), query, stretch.vectors, stretch.rows, mirror.shape().dimensions, out);
    // An overflow proves nothing: the row stays a candidate.
    for (std::size_t i = 0; i < stretch.rows; ++i) {
        if (std::isnan(out[i])) out[i] = -std::numeric_limits<float>::infinity();
    }
    if (snapshot.dead->log_entries[stretch.log].empty()) return;
    DeadWalk dead(snapshot.dead->log_entries[stretch.log], stretch.position);
    for (std::size_t i = 0; i < stretch.rows; ++i) {
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

// What the score of a row is at most that is among the k nearest: 2 errors above the k-th best. (NaN keeps all.)
float farthest_score(const std::vector<float>& scores, std::size_t k, float error)
{
    if (scores.size() <= k) return std::numeric_limits<float>::infinity();
    thread_local std::vector<float> ordered;
    ordered = scores;
    const auto kth = ordered.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(ordered.begin(), kth, ordered.end());
    return *kth + 2 * error;
}

// Gives what was found, from entry `first` on, the values of these vectors.
void take_values(const Values& values, const std::vector<const float*>& vectors, std::size_t dimensions,
                 std::size_t first, ThreadPool& pool, std::vector<Found>& found)
{
    const bool few = vectors.size() * dimensions * sizeof(float) < valued_together;
    ThreadPool& together = few ? caller_alone() : pool;
    together.parallel_for(vectors.size(), value_grain, [&](std::size_t begin, std::size_t end) {
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

void search_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, DeltaRows which, const float* query,
                  std::size_t k, const CancelToken* cancel, ThreadPool& pool, std::vector<Found>& found)
{
    found.clear();
    const std::size_t rows = which == DeltaRows::all ? snapshot.delta_rows() : snapshot.plain_rows();
    if (rows == 0 || k == 0) return;
    const std::size_t dimensions = mirror.shape().dimensions;
    const std::vector<Stretch> stretches = stretches_of(snapshot, which, dimensions);
    thread_local std::vector<float> own_scores;
    std::vector<float>& scores = own_scores;  // of this thread, for the others
    scores.resize(rows);
    ThreadPool& together = rows * dimensions * sizeof(float) < compared_together ? caller_alone() : pool;
    together.parallel_for(stretches.size(), 1, [&](std::size_t begin, std::size_t) {
        if (cancel != nullptr) cancel->check();
        const Stretch& stretch = stretches[begin];
        score_stretch(mirror, snapshot, stretch, query, scores.data() + stretch.number);
    });
    const float limit = farthest_score(scores, k, error_of_scores(mirror, snapshot, which, query));
    std::vector<const float*> vectors;
    for (const Stretch& stretch : stretches) {
        DeadWalk dead(snapshot.dead->log_entries[stretch.log], stretch.position);
        for (std::size_t i = 0; i < stretch.rows; ++i) {
            if (scores[stretch.number + i] > limit || dead.is_dead(stretch.position + i)) continue;
            found.push_back({0, delta_ordinal(stretch.log, stretch.position + i), stretch.tids[i]});
            vectors.push_back(stretch.vectors + i * dimensions);
        }
    }
    take_values(Values(mirror, query), vectors, dimensions, 0, together, found);
    keep_nearest(found, k);
}

namespace
{

// k times the refine factor, where a setting gives one.
std::uint32_t refined_rows(const SearchBatch& batch)
{
    const std::int64_t factor = std::clamp<std::int64_t>(batch.settings.get("refine_factor", 0), 0, max_k);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch.k * static_cast<std::uint64_t>(factor), max_k));
}

// How far a row may be to be among the k nearest, when the index has found these.
double reach_beside(const Mirror& mirror, const float* query, const std::vector<RowResult>& rows, std::size_t k)
{
    if (rows.size() < k || std::isnan(rows.back().distance)) return std::numeric_limits<double>::infinity();
    return rows.back().distance + mirror.searcher().bound_width(query);
}

std::vector<double> reaches(const Mirror& mirror, const SearchBatch& batch,
                            const std::vector<std::vector<RowResult>>& in_index)
{
    std::vector<double> reach(batch.count, std::numeric_limits<double>::infinity());
    if (!mirror.searcher().values_are_distances()) return reach;
    for (std::size_t i = 0; i < batch.count; ++i) {
        const float* query = batch.queries.data() + i * mirror.shape().dimensions;
        reach[i] = reach_beside(mirror, query, in_index[i], batch.k);
    }
    return reach;
}

// Adds what a part proposes for a query, with values; what values tell to be out of reach isn't looked at.
void rank_of_part(const DeltaPart& part, const std::vector<RowResult>& proposed, const Values& values, double reach,
                  std::size_t dimensions, ThreadPool& pool, std::vector<Found>& found)
{
    std::size_t within = proposed.size();
    if (part.proposes_values) {
        // They are sorted.
        while (within > 0 && proposed[within - 1].distance > reach) --within;
    }
    for (std::size_t at = 0; at < within; ++at) __builtin_prefetch(&part.rows[proposed[at].row]);
    const std::size_t first = found.size();
    std::vector<const float*> vectors;
    for (std::size_t at = 0; at < within; ++at) {
        const DeltaPart::Row& row = part.rows[proposed[at].row];
        found.push_back({0, row.ordinal, row.tid});
        vectors.push_back(row.vector);
    }
    take_values(values, vectors, dimensions, first, pool, found);
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
        // Where proposals are rounded, some more than k are ranked by their vectors, or as many as were asked for.
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
            const Values values(mirror, batch.queries.data() + i * dimensions);
            found[i].clear();
            for (std::size_t number = 0; number < snapshot.parts.size(); ++number)
                rank_of_part(*snapshot.parts[number].part, proposals[number][i], values, reach[i], dimensions, pool,
                             found[i]);
        }
    });
}

void search_delta_after(const Mirror& mirror, const MirrorSnapshot& snapshot, const float* query, std::size_t k,
                        const SearchCursor& cursor, const CancelToken* cancel, std::vector<Found>& found)
{
    found.clear();
    const std::size_t dimensions = mirror.shape().dimensions;
    const Values values(mirror, query);
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        DeadWalk dead(snapshot.dead->log_entries[log]);
        for_each_chunk(snapshot.logs[log], dimensions, snapshot.logs[log].start,
                       [&](std::uint64_t position, const Tid* tids, const float* vectors, std::size_t rows) {
                           if (cancel != nullptr) cancel->check();
                           for (std::size_t i = 0; i < rows; ++i) {
                               if (dead.is_dead(position + i)) continue;
                               const double distance = values.of(vectors + i * dimensions);
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
