// The SQL function pgwarp_check(index, heap).
#include "postgres/am/owned_index.h"
#include "postgres/am/table_owner.h"
#include "postgres/check/check.h"
#include "postgres/fmgr_cpp.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "funcapi.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

constexpr int most_looks = 100;  // repetitions on a standby that replays merges meanwhile

// Check as the table's owner, since the index's expressions are code of that owner.
void check_against_heap(IndexCheck* check, Relation table)
{
    const OwnerScope scope = enter_owner(table->rd_rel->relowner);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    for (int look = 0;; ++look) {
        CHECK_FOR_INTERRUPTS();
        if (check_structure(check) && check_heap(check, table, snapshot)) break;
        if (look == most_looks) elog(ERROR, "index \"%s\" keeps changing", RelationGetRelationName(check->index));
    }
    UnregisterSnapshot(snapshot);
    leave_owner(scope);
}

void check_alone(IndexCheck* check)
{
    for (int look = 0; !check_structure(check); ++look) {
        CHECK_FOR_INTERRUPTS();
        if (look == most_looks) elog(ERROR, "index \"%s\" keeps changing", RelationGetRelationName(check->index));
    }
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_check)
{
    using namespace pgwarp;
    const Oid oid = PG_GETARG_OID(0);
    TupleDesc description;
    if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE) {
        elog(ERROR, "return type must be a row type");
    }
    relation_close(open_owned_index(oid, AccessShareLock), AccessShareLock);
    // The lock keeps VACUUM and merges out, except those that a standby replays.
    const LOCKMODE lock = RecoveryInProgress() ? AccessShareLock : ShareUpdateExclusiveLock;
    Relation table = table_open(IndexGetRelation(oid, false), lock);
    IndexCheck check = {};
    check.index = open_owned_index(oid, AccessShareLock);
    if (PG_GETARG_BOOL(1)) {
        check_against_heap(&check, table);
    } else {
        check_alone(&check);
    }
    if (!keeps_unplaced(check.meta)) {
        ereport(NOTICE,
                (errmsg("index \"%s\" lacks the rows without a distance", RelationGetRelationName(check.index)),
                 errdetail("It was built by an earlier release, and its scans leave out NULLs and, under cosine "
                           "distance, zero vectors."),
                 errhint("REINDEX it.")));
    }
    Datum values[5];
    bool nulls[5] = {};
    values[0] = Int64GetDatum(static_cast<int64>(check.counts.live()));
    values[1] = Int64GetDatum(static_cast<int64>(check.counts.dead_rows + check.counts.dead_delta));
    values[2] = Int64GetDatum(static_cast<int64>(check.pages.blocks));
    values[3] = Int64GetDatum(static_cast<int64>(count_pages(check.pages, PageOwner::free)));
    values[4] = Int64GetDatum(static_cast<int64>(count_pages(check.pages, PageOwner::nobody)));
    HeapTuple tuple = heap_form_tuple(BlessTupleDesc(description), values, nulls);
    relation_close(check.index, AccessShareLock);
    table_close(table, lock);
    PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}
