// One search: the index and its delta, overlapped where a device works, merged by distance; ladders of rungs.
#include "engine/search/search.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "engine/search/delta_search.h"
#include "engine/search/filter_ways.h"
#include "engine/search/filtered_search.h"
#include "engine/search/rung_answers.h"
#include "protocol/search_bound.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t delta_grain = 4;  // queries whose delta rows a thread compares at a time

bool same_parameters(const ParameterList& a, const ParameterList& b)
{
    if (a.count != b.count) return false;
    for (std::uint32_t i = 0; i < a.count; ++i) {
        if (a.items[i].value != b.items[i].value || std::strcmp(a.items[i].name, b.items[i].name) != 0) return false;
    }
    return true;
}

bool same_rungs(const SearchSettings& a, const SearchSettings& b)
{
    if (a.earlier_count != b.earlier_count) return false;
    for (std::uint32_t i = 0; i < a.earlier_count; ++i) {
        if (a.earlier[i].k != b.earlier[i].k || a.earlier[i].effort != b.earlier[i].effort) return false;
    }
    return true;
}

SearchBatch make_batch(const SearchSettings& settings, const RowView& queries, const CancelToken* cancel)
{
    SearchBatch batch;
    if (queries.offsets == nullptr) {
        batch.queries = queries.dense();
    } else {
        batch.lists = queries;
    }
    batch.count = queries.count;
    batch.k = settings.k;
    batch.settings = settings.parameters;
    batch.effort = settings.effort;
    batch.cancel = cancel;
    return batch;
}

// The row after which search_exact() goes on: behind a delta row, all rows of that distance are done.
std::uint32_t row_cursor(const SearchCursor& cursor)
{
    constexpr std::uint64_t last_row = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(cursor.ordinal, last_row));
}

}  // namespace

bool can_share_batch(const SearchSettings& a, const SearchSettings& b)
{
    return a.mirror == b.mirror && a.mode == SearchMode::normal && b.mode == SearchMode::normal && a.k == b.k &&
           a.effort == b.effort && a.tids == b.tids && same_rungs(a, b) && same_parameters(a.parameters, b.parameters);
}

FilterOutcome filtered_of(const SearchAnswer& answer, std::size_t first, std::size_t count)
{
    FilterOutcome joined;
    for (std::size_t i = first; i < first + count && !answer.filtered.empty(); ++i) joined.add(answer.filtered[i]);
    return joined;
}

SearchCursor cursor_behind(std::span<const Result> results, std::span<const std::uint64_t> places,
                           const SearchCursor& before)
{
    if (results.empty() || places.size() != results.size()) return before;
    return {results.back().distance, places.back()};
}

namespace
{

RowView longest_of(const RowView& queries)
{
    std::size_t longest = 0;
    for (std::size_t i = 1; queries.offsets != nullptr && i < queries.count; ++i)
        if (queries.list(i).size() > queries.list(longest).size()) longest = i;
    return queries.row(longest);
}

// The cost of a query with the costliest of some predicates. Orders that none asked for before have to be made.
double costliest_predicate(Mirror& mirror, const QueryPredicates& predicates, const SearchBatch& query)
{
    constexpr std::size_t some = 4;
    double most = 0;
    const std::size_t step = std::max<std::size_t>(predicates.queries() / some, 1);
    for (std::size_t q = 0; q < predicates.queries(); ++q) {
        const auto predicate = predicates.of(q);
        if (predicate.empty()) {
            most = std::max(most, mirror.searcher().search_cost(query));
        } else if (q % step == 0 || !mirror.filter().is_ready(predicate)) {
            most = std::max(most, filtered_cost(mirror, predicate, query));
        }
    }
    return most;
}

}  // namespace

double estimate_cost(const SearchSettings& settings, const SearchQueries& queries)
{
    Mirror& mirror = *settings.mirror;
    const RowView query = longest_of(queries.rows);
    // A comparison reads all words of a list.
    const double values = mirror.row_values() + static_cast<double>(query.word_count());
    const auto snapshot = mirror.snapshot();
    if (settings.mode == SearchMode::continuation) {
        return 2.0 * values * static_cast<double>(mirror.rows() + snapshot->delta_rows());
    }
    const SearchBatch batch = make_batch(settings, query, nullptr);
    const double delta = 2.0 * values * static_cast<double>(snapshot->delta_rows());
    if (settings.tids != nullptr) return delta + named_cost(mirror, *settings.tids, batch);
    if (queries.predicates != nullptr) return delta + costliest_predicate(mirror, *queries.predicates, batch);
    double cost = 2.0 * values * static_cast<double>(snapshot->plain_rows()) + mirror.searcher().search_cost(batch);
    for (const PartView& view : snapshot->parts) cost += view.part->searcher->search_cost(batch);
    return cost;
}

namespace
{

// Bytes of the results of one query among `rows` rows: those found in the index or the delta, and those returned.
std::uint64_t found_bytes(const SearchSettings& settings, std::uint64_t rows)
{
    constexpr std::uint64_t each = sizeof(RowResult) + sizeof(Result) + sizeof(std::uint64_t);
    std::uint64_t found = 0;
    const RungList searches = list_searches(list_rungs(settings));
    for (const SearchRung& rung : searches.all()) found += std::min<std::uint64_t>(rung.k, rows);
    return std::max<std::uint64_t>(found * each, 1);
}

}  // namespace

std::size_t queries_within(const SearchSettings& settings, std::uint64_t bytes)
{
    constexpr std::uint64_t many = 4096;
    std::uint64_t queries = bytes / found_bytes(settings, std::numeric_limits<std::uint64_t>::max());
    // Only for large k does the number of rows matter.
    if (queries < many) {
        const Mirror& mirror = *settings.mirror;
        queries = bytes / found_bytes(settings, mirror.rows() + mirror.snapshot()->delta_rows());
    }
    return std::max<std::uint64_t>(queries, 1);
}

namespace
{

// Buffers of a batch, which the thread keeps from one batch to the next.
struct SearchWork {
    RungResults rungs;
    std::vector<std::vector<RowResult>> rows;
    std::vector<std::vector<Candidate>> probed;
    PartProposals proposals;
    std::vector<std::vector<Found>> part_rows;
    std::vector<std::vector<Found>> delta;
    SearchAnswer of_rung[max_rungs];
};

// Times of the stages of a dispatch.
struct DispatchTimes {
    Clock::duration index{};  // with the work that overlapped its device
    Clock::duration parts{};  // without the index; and of joining the results
    Clock::duration plain{};  // rows in no part
    bool overlapped{};        // delta rows were compared while a device worked
};

// Adds the duration of `work` to `sum`.
template <class Work>
void timed(Clock::duration& sum, const Work& work)
{
    const auto began = Clock::now();
    work();
    sum += Clock::now() - began;
}

// The nearest of the delta rows in no part, for each query.
void search_plain(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch, ThreadPool& pool,
                  SearchWork& work)
{
    pool.parallel_for(batch.count, delta_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const RowView query = query_of(mirror, batch, i);
            search_delta(mirror, snapshot, DeltaRows::in_no_part, query, batch.k, batch.cancel, pool, work.delta[i]);
        }
    });
}

// Parts on the device of the index start before the index: they take the device as long, and the host less. While the
// device works on both, rows in no part are compared.
void search_with_device_parts(Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                              ThreadPool& pool, SearchWork& work, DispatchTimes& times)
{
    OverlappedWork plain([&] { timed(times.plain, [&] { search_plain(mirror, snapshot, batch, pool, work); }); });
    OverlappedWork index([&] {
        timed(times.index, [&] {
            SearchBatch in_index = batch;
            in_index.overlapped_work = &plain;
            mirror.searcher().search(in_index, work.rows, pool);
        });
    });
    SearchBatch in_parts = batch;
    in_parts.overlapped_work = &index;
    const std::vector<std::vector<RowResult>> nothing(batch.count);
    timed(times.parts, [&] { propose_in_parts(mirror, snapshot, in_parts, nothing, pool, work.proposals); });
    times.parts -= times.index;
    times.overlapped = index.begun() && plain.begun();
    index.run();
    plain.run();
}

// While a device searches the index, rows in no part are compared. Parts come after the index: they search the lists
// that it has probed, and leave out rows that are farther than its results.
void search_index_first(Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch, ThreadPool& pool,
                        SearchWork& work, DispatchTimes& times)
{
    OverlappedWork plain([&] { timed(times.plain, [&] { search_plain(mirror, snapshot, batch, pool, work); }); });
    SearchBatch in_index = batch;
    if (snapshot.delta_rows() > 0) in_index.overlapped_work = &plain;
    timed(times.index, [&] { mirror.searcher().search(in_index, work.rows, pool); });
    times.overlapped = plain.begun();
    plain.run();
    if (snapshot.parts.empty()) return;
    timed(times.parts, [&] { propose_in_parts(mirror, snapshot, batch, work.rows, pool, work.proposals); });
}

// The nearest of all delta rows for query i, in work.delta.
void join_delta(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch, std::size_t i,
                ThreadPool& pool, SearchWork& work)
{
    const std::vector<Found>& in_parts = work.part_rows[i];
    std::vector<Found>& delta = work.delta[i];
    // Too few rows in the probed lists: the whole delta is compared, as the whole index was. A bound makes rows few.
    const bool bounded = within_of(batch.settings) < no_bound;
    if (!bounded && work.rows[i].size() + delta.size() + in_parts.size() < batch.k) {
        const RowView query = query_of(mirror, batch, i);
        return search_delta(mirror, snapshot, DeltaRows::all, query, batch.k, batch.cancel, pool, delta);
    }
    delta.insert(delta.end(), in_parts.begin(), in_parts.end());
    keep_nearest(delta, batch.k);
}

// Counts the cost of delta rows by the times of a dispatch.
void count_times(Mirror& mirror, const MirrorSnapshot& snapshot, std::size_t queries, const DispatchTimes& times)
{
    const std::uint64_t index = nanoseconds(times.index);
    const std::uint64_t parts = nanoseconds(times.parts);
    const std::uint64_t plain = nanoseconds(times.plain);
    if (!times.overlapped) return mirror.count_delta(index, parts, plain);
    const std::uint64_t all = index + parts;
    if (snapshot.delta_rows() <= few_delta_rows) mirror.count_with_few(queries, all);
    mirror.count_overlapped_delta({queries, all, parts, plain});
}

// Searches the rows of the index and the delta rows.
void search_all(Mirror& mirror, const MirrorSnapshot& snapshot, SearchBatch& batch, ThreadPool& pool, SearchWork& work)
{
    work.part_rows.resize(std::max(work.part_rows.size(), batch.count));
    for (std::size_t i = 0; i < batch.count; ++i) work.part_rows[i].clear();
    if (!snapshot.parts.empty()) {
        work.probed.resize(batch.count);
        for (auto& lists : work.probed) lists.clear();
        batch.probed = &work.probed;
    }
    DispatchTimes times;
    const bool parts_first = !snapshot.parts.empty() && snapshot.parts.front().part->on_device;
    (parts_first ? search_with_device_parts : search_index_first)(mirror, snapshot, batch, pool, work, times);
    if (!snapshot.parts.empty()) {
        timed(times.parts, [&] {
            rank_in_parts(mirror, snapshot, batch, work.rows, work.proposals, pool, work.part_rows);
            for (std::size_t i = 0; i < batch.count; ++i) join_delta(mirror, snapshot, batch, i, pool, work);
        });
    }
    count_times(mirror, snapshot, batch.count, times);
}

// Finds rows of the index for all rungs, in work.rungs, and delta rows for the last, whose k is the largest. Only for a
// snapshot without parts.
void search_rungs_together(Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                           std::span<const SearchRung> rungs, ThreadPool& pool, SearchWork& work)
{
    DispatchTimes times;
    OverlappedWork plain([&] { timed(times.plain, [&] { search_plain(mirror, snapshot, batch, pool, work); }); });
    SearchBatch in_index = batch;
    if (snapshot.delta_rows() > 0) in_index.overlapped_work = &plain;
    timed(times.index, [&] { mirror.searcher().search_rungs(in_index, rungs, work.rungs, pool); });
    times.overlapped = plain.begun();
    plain.run();
    // A device takes as long for each rung as for a search.
    count_times(mirror, snapshot, batch.count * rungs.size(), times);
}

// The same for queries with predicates, whose ways may differ from rung to rung. Delta rows are compared one by one,
// those in parts too: that time tells what they cost only where there are no parts.
void search_filtered_rungs(Mirror& mirror, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                           FilteredSearch& filtered, std::span<const SearchRung> rungs, SearchWork& work)
{
    DispatchTimes times;
    work.rungs.resize(rungs.size());
    timed(times.index, [&] {
        for (std::size_t rung = 0; rung < rungs.size(); ++rung)
            filtered.search(rungs[rung].k, rungs[rung].effort, work.rungs[rung]);
    });
    timed(times.plain, [&] { filtered.search_delta(batch.k, work.delta); });
    if (snapshot.parts.empty()) count_times(mirror, snapshot, batch.count, times);
}

// The method's own search, rung by rung. One traversal serves all of them, unless parts of the delta depend on the
// results of each.
void search_ladder(Mirror& mirror, const MirrorSnapshot& snapshot, SearchBatch& batch, const RungList& rungs,
                   FilteredSearch* filtered, ThreadPool& pool, SearchWork& work, SearchAnswer& answer)
{
    const bool compare = mirror.searcher().values_are_distances();
    const bool together = filtered != nullptr || (rungs.count > 1 && snapshot.parts.empty());
    const RungList searches = list_searches(rungs);
    batch.k = searches.all().back().k;
    if (filtered != nullptr) {
        search_filtered_rungs(mirror, snapshot, batch, *filtered, searches.all(), work);
    } else if (together) {
        search_rungs_together(mirror, snapshot, batch, searches.all(), pool, work);
    }
    for (std::size_t rung = 0; rung < rungs.count; ++rung) {
        SearchBatch own = batch;
        own.k = searches.rungs[rung].k;
        own.effort = searches.rungs[rung].effort;
        if (!together) search_all(mirror, snapshot, own, pool, work);
        SearchAnswer& target = rungs.count == 1 ? answer : work.of_rung[rung];
        clear_answer(target);
        append_found(mirror, together ? work.rungs[rung] : work.rows, work.delta, own, compare, target);
    }
    if (rungs.count == 1) return;
    clear_answer(answer);
    const bool in_order = mirror.searcher().result_kind() != ResultKind::approximate;
    join_rungs(work.of_rung, rungs.all(), batch.count, in_order, answer);
}

// One query's rows after its cursor.
void search_continuation(const SearchSettings& settings, const MirrorSnapshot& snapshot, const SearchBatch& batch,
                         const SearchQueries& queries, FilteredSearch* filtered, ThreadPool& pool, SearchWork& work)
{
    Mirror& mirror = *settings.mirror;
    const RowResult after{settings.after.distance, row_cursor(settings.after)};
    if (filtered != nullptr) {
        filtered->search_after(settings.k, after, work.rows);
    } else {
        mirror.searcher().search_exact(batch, after.distance, after.row, work.rows[0], pool);
    }
    DeltaFilter filter = {{}, settings.tids.get()};
    if (queries.predicates != nullptr) filter.predicate = queries.predicates->of(0);
    search_delta_after(mirror, snapshot, queries.rows, settings.k, settings.after, batch.cancel, work.delta[0], filter);
}

void answer_batch(const SearchSettings& settings, const SearchQueries& asked, const CancelToken* cancel,
                  ThreadPool& pool, SearchWork& work, SearchAnswer& answer)
{
    Mirror& mirror = *settings.mirror;
    const RowView& queries = asked.rows;
    const std::size_t count = queries.count;
    answer.snapshot = mirror.snapshot();
    const MirrorSnapshot& snapshot = *answer.snapshot;
    SearchBatch batch = make_batch(settings, queries, cancel);
    batch.dead = snapshot.dead->rows;
    batch.dead_version = snapshot.dead->rows_version;

    work.delta.resize(std::max(work.delta.size(), count));
    work.rows.resize(count);
    for (auto& rows : work.rows) rows.clear();
    std::optional<FilteredSearch> filtered;
    static const QueryPredicates none;
    const QueryPredicates& predicates = asked.predicates != nullptr ? *asked.predicates : none;
    if (asked.predicates != nullptr || settings.tids != nullptr)
        filtered.emplace(mirror, snapshot, predicates, settings.tids.get(), batch, pool);
    FilteredSearch* const filters = filtered ? &*filtered : nullptr;
    if (settings.mode == SearchMode::continuation) {
        search_continuation(settings, snapshot, batch, asked, filters, pool, work);
        clear_answer(answer);
        // Continuations need one order of all rows, even where values don't compare.
        append_found(mirror, work.rows, work.delta, batch, true, answer);
    } else {
        search_ladder(mirror, snapshot, batch, list_rungs(settings), filters, pool, work, answer);
    }
    answer.filtered = filtered ? filtered->outcomes() : std::vector<FilterOutcome>();
    answer.bound_width = 0;
    for (std::size_t i = 0; i < count; ++i)
        answer.bound_width = std::max(answer.bound_width, bound_width_of(mirror, queries.row(i)));
    answer.resolved = mirror.searcher().resolved_settings(batch);
    answer.kind = mirror.searcher().result_kind();
}

}  // namespace

void run_search(const SearchSettings& settings, const SearchQueries& queries, const CancelToken* cancel,
                ThreadPool& pool, SearchAnswer& answer)
{
    thread_local SearchWork kept;
    if (queries.rows.count <= queries_within(settings, most_kept_bytes)) {
        return answer_batch(settings, queries, cancel, pool, kept, answer);
    }
    SearchWork own;
    answer_batch(settings, queries, cancel, pool, own, answer);
}

}  // namespace pgwarp
