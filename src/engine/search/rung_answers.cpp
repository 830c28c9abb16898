#include "engine/search/rung_answers.h"

#include <algorithm>

namespace pgwarp
{

RungList list_rungs(const SearchSettings& settings)
{
    RungList list;
    for (std::uint32_t i = 0; i < settings.earlier_count; ++i) list.rungs[list.count++] = settings.earlier[i];
    list.rungs[list.count++] = {settings.effort, settings.k, 0};
    return list;
}

RungList list_searches(const RungList& rungs)
{
    RungList searches = rungs;
    for (std::uint32_t i = 1; i < rungs.count; ++i) searches.rungs[i].k += rungs.rungs[i - 1].k / 2;
    return searches;
}

void clear_answer(SearchAnswer& answer)
{
    answer.counts.clear();
    answer.results.clear();
    answer.places.clear();
}

namespace
{

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

}  // namespace

void append_found(const Mirror& mirror, const std::vector<std::vector<RowResult>>& rows,
                  const std::vector<std::vector<Found>>& delta, const SearchBatch& batch, bool compare,
                  SearchAnswer& answer)
{
    const auto append = compare ? append_merged : append_side_by_side;
    for (std::size_t i = 0; i < batch.count; ++i) append(mirror, rows[i], delta[i], batch.k, answer);
}

namespace
{

// Whether a row of a deeper rung may follow those of the rungs before: a row that belongs before them comes too late.
bool comes_behind(const SearchAnswer& answer, std::size_t first, const Result& result, std::uint64_t place)
{
    if (answer.results.size() == first) return true;
    const Result& last = answer.results.back();
    return result.distance != last.distance ? result.distance > last.distance : place > answer.places.back();
}

}  // namespace

void join_rungs(std::span<const SearchAnswer> of_rung, std::span<const SearchRung> rungs, std::size_t count,
                bool in_order, SearchAnswer& answer)
{
    std::size_t at[max_rungs] = {};
    thread_local std::vector<std::uint64_t> known;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = answer.results.size();
        for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
            const SearchAnswer& own = of_rung[rung];
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

}  // namespace pgwarp
