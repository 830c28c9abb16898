// The depth of the searches of a scan below a KnnFilter, and the description of the rows that it returns.
#include "postgres/scan/filtered_scan.h"

#include <cmath>
#include <limits>

#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/scan/scan_state.h"
#include "postgres/scan/search_limits.h"
#include "postgres/scan/search_plan.h"
#include "postgres/settings.h"
#include "protocol/search_bound.h"

namespace pgwarp
{

namespace
{

constexpr double spare_deviations = 2;    // margin for chance, in standard deviations of the number of rows that pass
constexpr uint32 most_at_once = 16384;    // rows of a search: the planner's estimate may be wrong
constexpr uint32 first_rows = 64;         // of a first search when there is no LIMIT
constexpr double usual_search_rows = 64;  // wanted rows that MethodDescription::compared_rows assumes
constexpr uint32 deeper = 4;              // factor by which each search has more rows than the one before
constexpr uint32 most_deeper = 2;         // number of such searches before an exact one

constexpr double farthest = std::numeric_limits<double>::infinity();

// Whether an exact search through all rows costs less than the method's own search for `wanted` rows.
bool exact_is_cheaper(Relation index, const IndexState& state, uint32 wanted)
{
    const auto rows = static_cast<double>(state.rows);
    const MethodDescription& method = access_method_of(index);
    const double compared = method.compared_rows(
        {state.meta.shape.element, Max(1.0, rows), state.options, index_settings(index, state.meta.shape.element)});
    return compared * Max(1.0, wanted / usual_search_rows) >= rows;
}

// The number of rows to search for so that a LIMIT gets `rows` rows that pass.
uint32 rows_of_filtered_search(const LimitHint& hint, int64 rows)
{
    if (hint.filter != nullptr) return rows_for_filter(*hint.filter, rows, 0);
    return static_cast<uint32>(Min(rows, int64{most_at_once}));
}

// Whether an approximate method should begin with an exact search: the plan reads all rows, and approximate searches
// would drop rows that they find late; or it reads more rows than recall was measured for; or the exact search costs
// less. `rows`: the number that pass the filter and that a LIMIT reads.
bool is_better_exact(IndexScanDesc scan, const IndexState& state, int64 rows)
{
    const LimitHint& hint = state_of(scan)->hint;
    if (hint.reads_all || reads_to_end(scan, state) || may_lead(state_of(scan)->other_operator)) return true;
    if (rows <= 0 || !hint.filtered) return false;
    const double pass_rate = hint.filter != nullptr ? hint.filter->pass_rate : 1.0;
    if (static_cast<double>(rows) > most_approximate * pass_rate) return true;
    return hint.filter != nullptr && exact_is_cheaper(scan->indexRelation, state, state_of(scan)->now.wanted);
}

// Whether the scan's searches miss no row, by its bound and the session's settings.
bool searches_completely(IndexScanDesc scan)
{
    const ScanState* state = state_of(scan);
    const MethodDescription& method = *state->method;
    const ElementType element = state->key.element;
    if (!may_end_early(method, element)) return method.complete.has(element);
    ParameterList settings = method_settings(method, element);
    set_within(&settings, state->now.within);
    return is_complete(method, element, settings);
}

void begin_exactly(Progress* now)
{
    now->continuation = true;
    now->cursor = front;
}

// The number of rows of the batch that the scan may return beyond the search's depth, or after another search: of rows
// whose bounds reach beyond those of the last row within the depth, only exact distances tell.
uint32 doubtful_rows(const Progress& now)
{
    const Candidate* items = now.batch.items;
    uint32 sure = now.confirmed;
    const double reached = sure > 0 ? items[sure - 1].value : lowest;
    while (sure > 0 && items[sure - 1].value < items[sure - 1].upper && items[sure - 1].upper > reached) --sure;
    return now.batch.count - sure;
}

}  // namespace

uint32 rows_for_filter(const FilteredScan& filter, int64 wanted, uint64 seen)
{
    double rate = filter.pass_rate;
    if (seen > 0) rate = (static_cast<double>(filter.passed) + 1.0) / (static_cast<double>(seen) + 1.0);
    const auto rows = static_cast<double>(wanted);
    const double needed = (rows + spare_deviations * std::sqrt(rows)) / Max(rate, lowest_rate);
    return static_cast<uint32>(Min(std::ceil(needed), double{most_at_once}));
}

uint32 first_wanted(const LimitHint& hint)
{
    const int64 rows = rows_for_limit(hint);
    if (rows <= 0) return first_rows;
    if (hint.filter != nullptr)
        return static_cast<uint32>(Min(rows_for_filter(*hint.filter, rows, 0), most_approximate));
    if (hint.filtered)
        return static_cast<uint32>(Min(Max(Min(rows, int64{max_k}) * 2, int64{first_rows}), int64{max_k}));
    return static_cast<uint32>(Min(rows, int64{max_k}));
}

bool reads_to_end(IndexScanDesc scan, const IndexState& state)
{
    const auto rows = static_cast<uint64>(limit_page_rows(state_of(scan)->hint));
    return !searches_completely(scan) && reads_to_end(scan->indexRelation, state, rows);
}

void choose_first_search(IndexScanDesc scan, const IndexState& state)
{
    const LimitHint& hint = state_of(scan)->hint;
    Progress& now = state_of(scan)->now;
    const bool complete = searches_completely(scan);
    const int64 rows = rows_for_limit(hint);
    if (!complete && is_better_exact(scan, state, rows)) begin_exactly(&now);
    if (!now.continuation && !(complete && hint.filter != nullptr && rows > 0)) return;
    now.wanted = rows > 0 ? rows_of_filtered_search(hint, rows) : most_at_once;
}

void choose_next_search(IndexScanDesc scan)
{
    const FilteredScan* filter = state_of(scan)->hint.filter;
    Progress& now = state_of(scan)->now;
    if (filter == nullptr || !filter->merges || now.exact) return;
    restart_order(scan);
    if (now.continuation) return;  // a continuation goes on in the order of codes
    const int64 missing = limit_hint_rows(state_of(scan)->hint) - static_cast<int64>(filter->passed);
    const uint32 needed = rows_for_filter(*filter, Max(int64{1}, missing), now.offered);
    now.wanted = Max(now.last_wanted * deeper, needed);
    now.continuation = false;
    if (now.last_was_dry || now.wanted > most_approximate || now.searches > most_deeper) {
        begin_exactly(&now);
        now.wanted = Max(needed, static_cast<uint32>(most_approximate));
    }
}

void note_passing(IndexScanDesc scan, uint32 passing)
{
    const LimitHint& hint = state_of(scan)->hint;
    Progress& now = state_of(scan)->now;
    now.enough = false;
    // Rows that pass the filter may fail PostgreSQL's recheck of the keys.
    if (passing == 0 || hint.filter == nullptr || now.searches != 1 || searches_part(scan)) return;
    const int64 wanted = limit_hint_rows(hint);
    now.enough = wanted > 0 && int64{passing} >= wanted + doubtful_rows(now);
}

void describe_row(IndexScanDesc scan, const Candidate& candidate)
{
    FilteredScan* filter = state_of(scan)->hint.filter;
    if (filter == nullptr || !filter->described) return;
    Progress& now = state_of(scan)->now;
    now.offered++;
    filter->scan = scan;
    if (now.unplaced) {
        // Unplaced rows come after every distance, or before.
        const bool null_key = now.null_distance && !now.null_query;
        const bool leading = is_leading(now.stage);
        filter->row = {true,          now.arbitrary, true,     true,         false,  null_key,
                       candidate.tid, farthest,      farthest, now.searches, leading};
        return;
    }
    const bool any_order = now.arbitrary || setting_iterative == static_cast<int>(IterativeSetting::relaxed);
    const bool confirmed = now.batch.next <= now.confirmed;
    filter->row = {true,          now.arbitrary,   now.exact || any_order, confirmed,    now.enough, false,
                   candidate.tid, candidate.value, candidate.upper,        now.searches, false};
}

const SearchTids* tids_of(IndexScanDesc scan)
{
    const FilteredScan* filter = state_of(scan)->hint.filter;
    return filter != nullptr ? filter->tids : nullptr;
}

bool searches_part(IndexScanDesc scan)
{
    return state_of(scan)->now.filter.words != nullptr || tids_of(scan) != nullptr;
}

bool scanned_row_distance(IndexScanDesc scan, Tid tid, double* distance)
{
    if (!row_distance(scan, tid, distance)) return false;
    const OperatorDistance* other_operator = state_of(scan)->other_operator;
    *distance = order_of(*distance, other_operator != nullptr && other_operator->nans_first);
    return true;
}

void skip_placed_rows(IndexScanDesc scan)
{
    // Rows for which the operator finds NaN are met last, among those that have a canonical distance.
    const OperatorDistance* other_operator = state_of(scan)->other_operator;
    if (other_operator != nullptr && !other_operator->nans_first && other_operator->bounds.may_be_nan()) return;
    Progress& now = state_of(scan)->now;
    now.batch.next = now.batch.ready = now.batch.count;
    now.held.count = 0;
    now.exhausted = true;
}

}  // namespace pgwarp
