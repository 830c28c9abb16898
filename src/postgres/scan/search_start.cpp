#include "postgres/scan/search_start.h"

#include "postgres/am/index_options.h"
#include "postgres/merge/merge_worker.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace pgwarp
{

namespace
{

List* reported_indexes = NIL;  // whose recall was said to be out of reach, in this session

// Say once that the recall asked for is beyond what the index was measured to reach.
void report_unreached(Relation index, const PlannedRecall& recall)
{
    const Oid oid = RelationGetRelid(index);
    if (list_member_oid(reported_indexes, oid)) return;
    MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
    reported_indexes = lappend_oid(reported_indexes, oid);
    MemoryContextSwitchTo(outer);
    ereport(NOTICE,
            (errmsg("index \"%s\" cannot reach a recall of %g", RelationGetRelationName(index), recall_asked(index)),
             errdetail("The best that was measured is %.4f.", recall.attained)));
}

void attend_index(Relation index, const IndexState& state, const PlannedRecall& recall)
{
    if (!recall.reached) report_unreached(index, recall);
    consider_merge(index, state);
}

}  // namespace

void prepare_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    attend_index(index, state, plan_normal_search(index, state, wanted, request));
}

void prepare_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request)
{
    attend_index(index, state, plan_rungs(index, state, wanted, request));
}

}  // namespace pgwarp
