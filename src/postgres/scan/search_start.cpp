// Reports and merges that the plan of a search is the occasion for.
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

List* reported_indexes = NIL;  // indexes for which this session has reported that the recall is out of reach

// Report, once for an index and session, that the target recall exceeds the best that was measured.
void report_unreached(Relation index, const PlannedRecall& recall)
{
    const Oid oid = RelationGetRelid(index);
    if (list_member_oid(reported_indexes, oid)) return;
    MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
    reported_indexes = lappend_oid(reported_indexes, oid);
    MemoryContextSwitchTo(outer);
    ereport(NOTICE,
            (errmsg("index \"%s\" cannot reach a recall of %g", RelationGetRelationName(index), recall_asked(index)),
             errdetail("The best that was measured is %.4f.", recall.attained),
             errhint("Ask for less by pgwarp.recall, or create the index with options that keep more of each row.")));
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
