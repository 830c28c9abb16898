// Plans searches by the index's calibration.
#include "postgres/scan/search_plan.h"

#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/settings.h"
#include "protocol/rungs.h"

namespace pgwarp
{

namespace
{

// Where the operator rounds, so do the bounds of its distances.
ResultPromise promise_of(Relation index, const IndexState& state)
{
    const ResultPromise promise = result_promise(state.meta.shape, state.options);
    if (promise.kind != ResultKind::exact || index_arithmetic(index) == Arithmetic::canonical) return promise;
    return {ResultKind::lower_bound, true};
}

// Whether a search compares all rows, as it does in an index of no more rows than the rungs hold. That costs little,
// and a search that misses no row drops none for being found late. ef_search counts rows and probes counts lists, so an
// effort of the number of rows covers all.
bool is_searched_through(const IndexState& state)
{
    return state.rows <= rung_ends[max_rungs - 1];
}

EffortChoice effort_for_all(const IndexState& state)
{
    return {Max(int64{1}, static_cast<int64>(state.rows)), 1.0F, true};
}

// The least effort of searches of an hnsw index while nobody set a recall or an effort: the default of hnsw.ef_search,
// for which pgvector's users know the recall.
int64 least_effort(Relation index)
{
    constexpr int64 usual_ef_search = 40;
    const Alias* alias = setting_recall > 0 ? nullptr : find_alias(index);
    return alias != nullptr && alias->number == MethodAlias::hnsw ? usual_ef_search : 0;
}

// The number of rows of the arrays and the logs, dead ones included.
uint64 count_placed(const IndexState& state)
{
    uint64 rows = state.rows;
    for (uint32 log = 0; log < delta_log_count; ++log) rows += state.delta_end[log] - state.meta.logs[log].start;
    return rows;
}

// Whether the search misses no row, by the settings of the request and those of the session that it will get.
bool is_planned_complete(const MethodDescription& method, ElementType element, const SearchRequest& request)
{
    if (!may_end_early(method, element)) return method.complete.has(element);
    ParameterList settings = request.settings;
    add_method_settings(method, element, &settings);
    return is_complete(method, element, settings);
}

}  // namespace

PlannedRecall plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    const Calibration& calibration = state.calibration;
    const bool overridden = add_index_settings(index, state.meta.shape.element, &request->settings);
    const EffortChoice choice =
        is_searched_through(state) ? effort_for_all(state) : choose_effort(calibration, wanted, recall_asked(index));
    request->mode = SearchMode::normal;
    request->k = search_width(promise_of(index, state), wanted);
    request->effort = Max(choice.effort, least_effort(index));
    return {calibration.count == 0 || choice.reached || overridden, choice.attained};
}

bool has_rungs(bool complete, ResultKind kind)
{
    // Approximate results are sorted by distances of heap rows, across all searches, so they need no rungs.
    const bool in_order = setting_iterative != static_cast<int>(IterativeSetting::relaxed);
    return in_order && !complete && kind != ResultKind::approximate;
}

PlannedRecall plan_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    const MethodDescription& method = access_method_of(index);
    const ResultPromise promise = promise_of(index, state);
    if (!has_rungs(is_planned_complete(method, state.meta.shape.element, *request), promise.kind))
        return plan_normal_search(index, state, wanted, request);
    const bool overridden = add_index_settings(index, state.meta.shape.element, &request->settings);
    const uint32 last = rungs_of(wanted) - 1;
    EffortChoice choice = {};
    for (uint32 rung = 0; rung <= last; ++rung) {
        SearchRung search = choose_rung(state.calibration, promise, rung, recall_asked(index), &choice);
        if (is_searched_through(state)) {
            choice = effort_for_all(state);
            search.effort = choice.effort;
        }
        search.effort = Max(search.effort, least_effort(index));
        if (rung < last) request->earlier[request->earlier_count++] = search;
        request->k = search.k;
        request->effort = search.effort;
    }
    request->mode = SearchMode::normal;
    return {state.calibration.count == 0 || choice.reached || overridden, choice.attained};
}

bool reads_to_end(Relation index, const IndexState& state, uint64 rows)
{
    constexpr uint64 most_approximate = rung_ends[max_rungs - 1];  // recall is measured up to it
    const uint64 placed = count_placed(state);
    if (rows == 0 || rows < placed / 2 || (rows < placed && rows <= most_approximate)) return false;
    if (placed > most_approximate) return true;
    ParameterList settings;
    return add_index_settings(index, state.meta.shape.element, &settings);
}

}  // namespace pgwarp
