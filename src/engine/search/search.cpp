// One search: the index and its delta, overlapped where a device works, merged by distance; ladders of rungs.
#include "engine/search/search.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/search/delta_search.h"
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

// The rungs of a search; k and effort of the search are the last.
struct RungList {
    std::uint32_t count = 0;
    SearchRung rungs[max_rungs] = {};
    std::span<const SearchRung> all() const { return {rungs, count}; }
};

RungList list_rungs(const SearchSettings& settings)
{
    RungList list;
    for (std::uint32_t i = 0; i < settings.earlier_count; ++i) list.rungs[list.count++] = settings.earlier[i];
    list.rungs[list.count++] = {settings.effort, settings.k, 0};
    return list;
}

// The searches that fill the rungs. Some rows that a deeper rung finds belong before rows of the earlier rungs, which
// are fixed by then. They are at most half as many as those, unless the earlier rung has missed most of its rows.
RungList list_searches(const RungList& rungs)
{
    RungList searches = rungs;
    for (std::uint32_t i = 1; i < rungs.count; ++i) searches.rungs[i].k += rungs.rungs[i - 1].k / 2;
    return searches;
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

void append_row(const Mirror& mirror, const RowResult& row, SearchAnswer& answer)
{
    answer.results.push_back({mirror.tid(row.row), ordered_distance(row.distance)});
    answer.places.push_back(row.row);
}

void append_entry(const Found& entry, SearchAnswer& answer)
{
    answer.results.push_back({entry.tid, entry.distance});
    answer.places.push_back(entry.ordinal);
}

// Appends k of two lists whose values don't compare. The client ranks the rows itself, and asks for several times the
// rows that it wants. The list of the delta is exact: a quarter of k is enough of it.
void append_side_by_side(const Mirror& mirror, const std::vector<RowResult>& rows, const std::vector<Found>& delta,
                         std::size_t k, SearchAnswer& answer)
{
    const std::size_t kept = std::min(delta.size(), std::max((k + 3) / 4, k - std::min(k, rows.size())));
    const std::size_t others = std::min(rows.size(), k - kept);
    for (std::size_t i = 0; i < kept; ++i) append_entry(delta[i], answer);
    for (std::size_t i = 0; i < others; ++i) append_row(mirror, rows[i], answer);
    answer.counts.push_back(static_cast<std::uint32_t>(kept + others));
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
            append_row(mirror, rows[row++], answer);
        } else {
            append_entry(delta[entry++], answer);
        }
        ++count;
    }
    answer.counts.push_back(count);
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
           a.effort == b.effort && same_rungs(a, b) && same_parameters(a.parameters, b.parameters);
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

}  // namespace

double estimate_cost(const SearchSettings& settings, const RowView& queries)
{
    const Mirror& mirror = *settings.mirror;
    const RowView query = longest_of(queries);
    // A comparison reads all words of a list.
    const double values = mirror.row_values() + static_cast<double>(query.word_count());
    const auto snapshot = mirror.snapshot();
    if (settings.mode == SearchMode::continuation) {
        return 2.0 * values * static_cast<double>(mirror.rows() + snapshot->delta_rows());
    }
    const SearchBatch batch = make_batch(settings, query, nullptr);
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
    std::vector<std::uint64_t> known_places;
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

void clear_answer(SearchAnswer& answer)
{
    answer.counts.clear();
    answer.results.clear();
    answer.places.clear();
}

// Appends the results in the index and its delta for each query.
void append_found(const Mirror& mirror, const std::vector<std::vector<RowResult>>& rows, const SearchWork& work,
                  const SearchBatch& batch, bool compare, SearchAnswer& answer)
{
    const auto append = compare ? append_merged : append_side_by_side;
    for (std::size_t i = 0; i < batch.count; ++i) append(mirror, rows[i], work.delta[i], batch.k, answer);
}

// Whether a row of a deeper rung may follow those of the rungs before: a row that belongs before them comes too late.
bool comes_behind(const SearchAnswer& answer, std::size_t first, const Result& result, std::uint64_t place)
{
    if (answer.results.size() == first) return true;
    const Result& last = answer.results.back();
    return result.distance != last.distance ? result.distance > last.distance : place > answer.places.back();
}

// Joins the rungs of each query: the rows of the first, then those of the next behind them, up to the k of that rung in
// all. Without an order of values, only rows that are known already are left out.
void join_rungs(SearchWork& work, std::span<const SearchRung> rungs, std::size_t count, bool in_order,
                SearchAnswer& answer)
{
    std::size_t at[max_rungs] = {};
    std::vector<std::uint64_t>& known = work.known_places;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = answer.results.size();
        for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
            const SearchAnswer& own = work.of_rung[rung];
            known.assign(answer.places.begin() + static_cast<std::ptrdiff_t>(first), answer.places.end());
            std::sort(known.begin(), known.end());
            const std::size_t end = at[rung] + own.counts[i];
            for (std::size_t next = at[rung]; next < end && answer.results.size() < first + rungs[rung].k; ++next) {
                const Result& result = own.results[next];
                const std::uint64_t place = own.places[next];
                if (in_order ? !comes_behind(answer, first, result, place)
                             : std::binary_search(known.begin(), known.end(), place))
                    continue;
                answer.results.push_back(result);
                answer.places.push_back(place);
            }
            at[rung] = end;
        }
        answer.counts.push_back(static_cast<std::uint32_t>(answer.results.size() - first));
    }
}

// The method's own search, rung by rung. One traversal serves all of them, unless parts of the delta depend on the
// results of each.
void search_ladder(Mirror& mirror, const MirrorSnapshot& snapshot, SearchBatch& batch, const RungList& rungs,
                   ThreadPool& pool, SearchWork& work, SearchAnswer& answer)
{
    const bool compare = mirror.searcher().values_are_distances();
    const bool together = rungs.count > 1 && snapshot.parts.empty();
    const RungList searches = list_searches(rungs);
    batch.k = searches.all().back().k;
    if (together) search_rungs_together(mirror, snapshot, batch, searches.all(), pool, work);
    for (std::size_t rung = 0; rung < rungs.count; ++rung) {
        SearchBatch own = batch;
        own.k = searches.rungs[rung].k;
        own.effort = searches.rungs[rung].effort;
        if (!together) search_all(mirror, snapshot, own, pool, work);
        SearchAnswer& target = rungs.count == 1 ? answer : work.of_rung[rung];
        clear_answer(target);
        append_found(mirror, together ? work.rungs[rung] : work.rows, work, own, compare, target);
    }
    if (rungs.count == 1) return;
    clear_answer(answer);
    const bool in_order = mirror.searcher().result_kind() != ResultKind::approximate;
    join_rungs(work, rungs.all(), batch.count, in_order, answer);
}

void answer_batch(const SearchSettings& settings, const RowView& queries, const CancelToken* cancel, ThreadPool& pool,
                  SearchWork& work, SearchAnswer& answer)
{
    Mirror& mirror = *settings.mirror;
    const std::size_t count = queries.count;
    answer.snapshot = mirror.snapshot();
    const MirrorSnapshot& snapshot = *answer.snapshot;
    SearchBatch batch = make_batch(settings, queries, cancel);
    batch.dead = snapshot.dead->rows;
    batch.dead_version = snapshot.dead->rows_version;

    work.delta.resize(std::max(work.delta.size(), count));
    work.rows.resize(count);
    for (auto& rows : work.rows) rows.clear();
    if (settings.mode == SearchMode::continuation) {
        mirror.searcher().search_exact(batch, settings.after.distance, row_cursor(settings.after), work.rows[0], pool);
        search_delta_after(mirror, snapshot, queries, settings.k, settings.after, cancel, work.delta[0]);
        clear_answer(answer);
        // Continuations need one order of all rows, even where values don't compare.
        append_found(mirror, work.rows, work, batch, true, answer);
    } else {
        search_ladder(mirror, snapshot, batch, list_rungs(settings), pool, work, answer);
    }
    answer.bound_width = 0;
    for (std::size_t i = 0; i < count; ++i)
        answer.bound_width = std::max(answer.bound_width, bound_width_of(mirror, queries.row(i)));
    answer.resolved = mirror.searcher().resolved_settings(batch);
    answer.kind = mirror.searcher().result_kind();
}

}  // namespace

void run_search(const SearchSettings& settings, const RowView& queries, const CancelToken* cancel, ThreadPool& pool,
                SearchAnswer& answer)
{
    thread_local SearchWork kept;
    if (queries.count <= queries_within(settings, most_kept_bytes)) {
        return answer_batch(settings, queries, cancel, pool, kept, answer);
    }
    SearchWork own;
    answer_batch(settings, queries, cancel, pool, own, answer);
}

}  // namespace pgwarp
