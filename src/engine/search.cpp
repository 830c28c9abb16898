#include "engine/search.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/delta_search.h"

namespace pgwarp
{

namespace
{

bool same_parameters(const ParameterList& a, const ParameterList& b)
{
    if (a.count != b.count) return false;
    for (std::uint32_t i = 0; i < a.count; ++i) {
        if (a.items[i].value != b.items[i].value || std::strcmp(a.items[i].name, b.items[i].name) != 0) return false;
    }
    return true;
}

SearchBatch make_batch(const SearchSettings& settings, std::span<const float> queries, std::size_t count,
                       const CancelToken* cancel)
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = count;
    batch.k = settings.k;
    batch.settings = settings.parameters;
    batch.effort = settings.effort;
    batch.cancel = cancel;
    return batch;
}

// Appends the k nearest of two sorted lists to the answer.
void append_merged(const Mirror& mirror, const std::vector<RowResult>& rows, const std::vector<Found>& delta,
                   std::size_t k, SearchAnswer& answer)
{
    std::size_t row = 0;
    std::size_t entry = 0;
    std::uint32_t count = 0;
    while (count < k && (row < rows.size() || entry < delta.size())) {
        // At equal distance the row of the index comes first: its ordinal is the smaller.
        const bool take_row = entry == delta.size() ||
                              (row < rows.size() && ordered_distance(rows[row].distance) <= delta[entry].distance);
        if (take_row) {
            const double distance = ordered_distance(rows[row].distance);
            answer.results.push_back({mirror.tid(rows[row].row), distance});
            answer.places.push_back(rows[row].row);
            ++row;
        } else {
            answer.results.push_back({delta[entry].tid, delta[entry].distance});
            answer.places.push_back(delta[entry].ordinal);
            ++entry;
        }
        ++count;
    }
    answer.counts.push_back(count);
}

// The row after which search_exact() is to go on: behind a delta cursor all rows of that distance are done.
std::uint32_t row_cursor(const SearchCursor& cursor)
{
    constexpr std::uint64_t last_row = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(cursor.ordinal, last_row));
}

}  // namespace

bool can_share_batch(const SearchSettings& a, const SearchSettings& b)
{
    return a.mirror == b.mirror && a.mode == SearchMode::normal && b.mode == SearchMode::normal && a.k == b.k &&
           a.effort == b.effort && same_parameters(a.parameters, b.parameters);
}

SearchCursor cursor_after(std::span<const Result> results, std::span<const std::uint64_t> places,
                          const SearchCursor& began)
{
    if (results.empty() || places.size() != results.size()) return began;
    return {results.back().distance, places.back()};
}

double estimate_cost(const SearchSettings& settings, std::span<const float> queries, std::size_t count)
{
    const Mirror& mirror = *settings.mirror;
    const double dimensions = mirror.shape().dimensions;
    const double delta = 2.0 * dimensions * static_cast<double>(mirror.snapshot()->delta_rows());
    if (settings.mode == SearchMode::continuation) return delta + 2.0 * dimensions * static_cast<double>(mirror.rows());
    return delta + mirror.searcher().search_cost(make_batch(settings, queries, count, nullptr));
}

void run_search(const SearchSettings& settings, std::span<const float> queries, std::size_t count,
                const CancelToken* cancel, ThreadPool& pool, SearchAnswer& answer)
{
    thread_local std::vector<std::vector<RowResult>> rows;
    thread_local std::vector<Found> delta;
    const Mirror& mirror = *settings.mirror;
    const std::size_t dimensions = mirror.shape().dimensions;
    answer.snapshot = mirror.snapshot();
    const MirrorSnapshot& snapshot = *answer.snapshot;
    SearchBatch batch = make_batch(settings, queries, count, cancel);
    batch.dead = snapshot.dead->rows;

    rows.resize(std::max(rows.size(), count));
    for (std::size_t i = 0; i < count; ++i) rows[i].clear();
    if (settings.mode == SearchMode::continuation) {
        mirror.searcher().search_exact(batch, settings.after.distance, row_cursor(settings.after), rows[0], pool);
    } else {
        rows.resize(count);
        mirror.searcher().search(batch, rows, pool);
    }

    answer.counts.clear();
    answer.results.clear();
    answer.places.clear();
    answer.bound_width = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float* query = queries.data() + i * dimensions;
        if (settings.mode == SearchMode::continuation) {
            search_delta_after(mirror, snapshot, query, settings.k, settings.after, cancel, delta);
        } else {
            search_delta(mirror, snapshot, query, settings.k, cancel, delta);
        }
        append_merged(mirror, rows[i], delta, settings.k, answer);
        answer.bound_width = std::max(answer.bound_width, mirror.searcher().bound_width(query));
    }
    answer.resolved = mirror.searcher().resolved_settings(batch);
    answer.kind = mirror.searcher().result_kind();
}

}  // namespace pgwarp
