// What a scan asks the engine for.
#include "postgres/scan/scan.h"

#include <cmath>

#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/merge/merge_worker.h"
#include "postgres/settings.h"
#include "postgres/storage/included_tuple.h"
#include "protocol/rungs.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace pgwarp
{

namespace
{

constexpr double rounding_slack = 1e-11;  // of the arithmetic of bounds

List* reported_indexes = NIL;  // whose recall was said to be out of reach, in this session

// Say once that the recall asked for is beyond what the index was measured to reach.
void report_unreached(Relation index, const EffortChoice& choice)
{
    const Oid oid = RelationGetRelid(index);
    if (list_member_oid(reported_indexes, oid)) return;
    MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
    reported_indexes = lappend_oid(reported_indexes, oid);
    MemoryContextSwitchTo(outer);
    ereport(NOTICE,
            (errmsg("index \"%s\" cannot reach a recall of %g", RelationGetRelationName(index), recall_asked(index)),
             errdetail("The best that was measured is %.4f.", choice.attained)));
}

ResultPromise promise_of(const IndexState& state)
{
    return result_promise(state.meta.shape, state.directory->options);
}

// Indexes of no more rows than the rungs hold are searched through: that costs little, and a search that misses none of
// the rows leaves none of them out as found late. ef_search and probes alike count rows or lists, so as many as there
// are rows are all.
bool is_searched_through(const IndexState& state)
{
    return state.directory->rows <= rung_ends[max_rungs - 1];
}

EffortChoice effort_for_all(const IndexState& state)
{
    return {Max(int64{1}, static_cast<int64>(state.directory->rows)), 1.0F, true};
}

}  // namespace

void plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    const Calibration& calibration = state.directory->calibration;
    const bool overridden = add_method_settings(access_method_of(index), &request->settings);
    const EffortChoice choice =
        is_searched_through(state) ? effort_for_all(state) : choose_effort(calibration, wanted, recall_asked(index));
    request->mode = SearchMode::normal;
    request->k = search_width(promise_of(state), wanted);
    request->effort = choice.effort;
    if (calibration.count > 0 && !choice.reached && !overridden) report_unreached(index, choice);
    consider_merge(index, state);
}

bool has_rungs(const MethodDescription& method, ResultKind kind)
{
    // Approximate results are put in order by the rows, of all rungs together.
    const bool in_order = setting_iterative != static_cast<int>(IterativeSetting::relaxed);
    return in_order && !method.complete && kind != ResultKind::approximate;
}

void plan_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    const MethodDescription& method = access_method_of(index);
    const ResultPromise promise = promise_of(state);
    if (!has_rungs(method, promise.kind)) return plan_normal_search(index, state, wanted, request);
    const bool overridden = add_method_settings(method, &request->settings);
    const uint32 last = rungs_of(wanted) - 1;
    EffortChoice choice = {};
    for (uint32 rung = 0; rung <= last; ++rung) {
        SearchRung search = choose_rung(state.directory->calibration, promise, rung, recall_asked(index), &choice);
        if (is_searched_through(state)) {
            choice = effort_for_all(state);
            search.effort = choice.effort;
        }
        if (rung < last) request->earlier[request->earlier_count++] = search;
        request->k = search.k;
        request->effort = search.effort;
    }
    request->mode = SearchMode::normal;
    if (state.directory->calibration.count > 0 && !choice.reached && !overridden) report_unreached(index, choice);
    consider_merge(index, state);
}

void ask_for_places(Relation index, SearchRequest* request)
{
    if (!has_included_columns(index)) return;
    request->want_places = 1;
    // A reply has room for so many results with their places.
    request->k = Min(request->k, max_k / 2);
}

void plan_placed_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    plan_normal_search(index, state, wanted, request);
    ask_for_places(index, request);
}

void plan_placed_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    plan_rungs(index, state, wanted, request);
    ask_for_places(index, request);
}

Candidate make_bounded(const Result& result, ResultKind kind, double bound_width)
{
    const bool is_bound = kind != ResultKind::exact && std::isfinite(result.distance);
    const double slack = is_bound ? rounding_slack * (std::fabs(result.distance) + bound_width) : 0;
    return {result.tid, result.distance - slack, result.distance + bound_width + slack, false, false, false, no_place};
}

}  // namespace pgwarp
