// The callbacks of VACUUM. They need no engine: a merge that fails for want of it is left for later.
#include "postgres/am/vacuum.h"

#include "postgres/merge/merge.h"
#include "postgres/storage/tombstones.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "utils/resowner.h"
}

namespace pgwarp
{

// Rows and delta entries that aren't dead.
static uint64 count_live(Relation index)
{
    const MetaPage meta = read_metapage(index);
    const Directory* directory = read_directory(index, meta);
    RowCounts placed = {};
    RowCounts unplaced = {};
    if (directory == nullptr || count_rows(index, meta, *directory, nullptr, &placed) == ReadResult::recycled ||
        count_unplaced_rows(index, meta, *directory, PG_UINT64_MAX, &unplaced) == ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during VACUUM", RelationGetRelationName(index));
    }
    return (placed + unplaced).live();
}

// Whether an error comes from the engine. Such an error of a merge must not fail VACUUM.
static bool is_engine_trouble(int code)
{
    return code == ERRCODE_SYSTEM_ERROR || code == ERRCODE_CANNOT_CONNECT_NOW || code == ERRCODE_OUT_OF_MEMORY ||
           code == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE || code == ERRCODE_INTERNAL_ERROR;
}

// Merges when the logs or dead rows cost searches too much. VACUUM must end even when the engine fails, or the table's
// age would grow. Therefore the merge has a subtransaction of its own, except in a parallel VACUUM, which can't have
// one.
static void merge_in_vacuum(Relation index)
{
    if (IsInParallelMode()) {
        merge_index(index, MergeReason::vacuum);
        return;
    }
    MemoryContext outer = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(outer);
    PG_TRY();
    {
        merge_index(index, MergeReason::vacuum);
        ReleaseCurrentSubTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(outer);
        ErrorData* error = CopyErrorData();
        FlushErrorState();
        // After every error the subtransaction ends here: a statement that ends in one leaves the session in an
        // aborted one.
        RollbackAndReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(outer);
        CurrentResourceOwner = owner;
        if (!is_engine_trouble(error->sqlerrcode)) ReThrowError(error);
        ereport(WARNING, (errmsg("the merge of index \"%s\" is left for later: %s", RelationGetRelationName(index),
                                 error->message)));
        FreeErrorData(error);
    }
    PG_END_TRY();
    MemoryContextSwitchTo(outer);
    CurrentResourceOwner = owner;
}

// Marks the entries whose heap rows are dead, before their heap addresses are used again.
IndexBulkDeleteResult* pgwarp_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                           IndexBulkDeleteCallback callback, void* callback_state)
{
    if (stats == nullptr) stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
    // No scan reads such a file any more, and an error would keep VACUUM from the table.
    if (is_file_of_pgvector(info->index)) return stats;
    const SweepCounts counts = sweep_dead_tids(info->index, callback, callback_state);
    stats->num_index_tuples = static_cast<double>(counts.live);
    stats->tuples_removed += static_cast<double>(counts.removed);
    stats->estimated_count = false;
    return stats;
}

// Merges if needed and reports the index's size, also when VACUUM deleted nothing.
IndexBulkDeleteResult* pgwarp_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats)
{
    if (info->analyze_only || is_file_of_pgvector(info->index)) return stats;
    merge_in_vacuum(info->index);
    if (stats == nullptr) {
        stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
        stats->num_index_tuples = static_cast<double>(count_live(info->index));
    }
    stats->num_pages = RelationGetNumberOfBlocks(info->index);
    // Rows that are being inserted are in the index before the heap's count includes them.
    if (!info->estimated_count && stats->num_index_tuples > info->num_heap_tuples) {
        stats->num_index_tuples = info->num_heap_tuples;
    }
    return stats;
}

}  // namespace pgwarp
