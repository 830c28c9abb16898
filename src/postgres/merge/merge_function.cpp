// CALL pgwarp_merge(index).
#include "postgres/am/owned_index.h"
#include "postgres/am/table_owner.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/merge/merge.h"

extern "C" {
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "pgstat.h"
#include "utils/backend_progress.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

// Lock the table so that VACUUM, other merges and changes of the table wait, while reads and writes go on.
Relation open_to_merge(Oid oid, Relation* table)
{
    relation_close(open_owned_index(oid, AccessShareLock), AccessShareLock);
    const Oid locked = IndexGetRelation(oid, false);
    // The holder of the lock may be CREATE INDEX CONCURRENTLY, which waits for all older snapshots.
    InvalidateCatalogSnapshotConditionally();
    *table = table_open(locked, ShareUpdateExclusiveLock);
    return open_owned_index(oid, RowExclusiveLock);
}

// Release the snapshot of CALL if no caller needs it: it would hold back VACUUM for the whole merge, and CREATE INDEX
// CONCURRENTLY, for whose lock this session may wait. COMMIT in a procedure does the same.
void release_snapshot(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == nullptr || !IsA(fcinfo->context, CallContext)) return;
    if (!castNode(CallContext, fcinfo->context)->atomic) ForgetPortalSnapshots();
}

}  // namespace

MergeOutcome merge_throttled(Relation index, MergeReason reason)
{
    MergeOutcome outcome = {};
    pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX, index->rd_index->indrelid);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_INDEX_OID, RelationGetRelid(index));
    pgstat_progress_update_param(PROGRESS_CREATEIDX_ACCESS_METHOD_OID, index->rd_rel->relam);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_PHASE_BUILD);
    PG_TRY();
    {
#if PG_VERSION_NUM >= 160000
        VacuumUpdateCosts();
#else
        VacuumCostActive = VacuumCostDelay > 0;
#endif
        VacuumCostBalance = 0;
        const OwnerScope scope = enter_owner(index->rd_rel->relowner);
        outcome = merge_index(index, reason);
        leave_owner(scope);
    }
    PG_FINALLY();
    {
        VacuumCostActive = false;
    }
    PG_END_TRY();
    pgstat_progress_end_command();
    return outcome;
}

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_merge)
{
    using namespace pgwarp;
    // A procedure cannot be STRICT.
    if (PG_ARGISNULL(0)) ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("index must not be null")));
    PreventCommandDuringRecovery("pgwarp_merge()");
    PreventCommandIfReadOnly("pgwarp_merge()");
    Relation table = nullptr;
    release_snapshot(fcinfo);
    Relation index = open_to_merge(PG_GETARG_OID(0), &table);
    merge_throttled(index, MergeReason::asked);
    relation_close(index, RowExclusiveLock);
    table_close(table, NoLock);
    PG_RETURN_VOID();
}
