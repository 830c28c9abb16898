// What a scan asks the engine for.
#include "postgres/access/scan.h"

#include <cmath>

#include "postgres/maintenance/merge_worker.h"
#include "postgres/settings.h"
#include "postgres/storage/included_tuple.h"
#include "protocol/calibration.h"

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
    ereport(NOTICE, (errmsg("index \"%s\" cannot reach a recall of %g", RelationGetRelationName(index), setting_recall),
                     errdetail("The best that was measured is %.4f.", choice.attained)));
}

// How many results to ask the engine for, so that `wanted` rows can be emitted: of bounds the last few may be out of
// order, approximate ones are ranked by the heap.
uint32 search_width(ResultKind kind, Metric metric, uint32 wanted)
{
    uint64 width = wanted;
    switch (kind) {
        case ResultKind::approximate:
            width = Max(uint64{4} * wanted, uint64{64});
            break;
        case ResultKind::lower_bound:
            width = uint64{wanted} + wanted / 8 + 3;
            break;
        case ResultKind::exact:
            width = metric == Metric::cosine ? uint64{wanted} + 2 : uint64{wanted};
            break;
    }
    return static_cast<uint32>(Min(width, uint64{max_k}));
}

}  // namespace

void plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    const Calibration& calibration = state.directory->calibration;
    const ResultKind kind = access_method(state.meta.shape.method).result_kind(state.directory->options);
    request->mode = SearchMode::normal;
    request->k = search_width(kind, static_cast<Metric>(state.meta.shape.metric), wanted);
    const bool overridden = access_method_of(index).add_settings(&request->settings);
    const EffortChoice choice = choose_effort(calibration, wanted, setting_recall);
    request->effort = choice.effort;
    if (calibration.count > 0 && !choice.reached && !overridden) report_unreached(index, choice);
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

Candidate make_bounded(const Result& result, ResultKind kind, double bound_width)
{
    const bool is_bound = kind != ResultKind::exact && std::isfinite(result.distance);
    const double slack = is_bound ? rounding_slack * (std::fabs(result.distance) + bound_width) : 0;
    return {result.tid, result.distance - slack, result.distance + bound_width + slack, false, false, false, no_place};
}

}  // namespace pgwarp
