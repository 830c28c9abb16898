#include "postgres/access/vacuum.h"

#include "postgres/storage/tombstones.h"

namespace pgwarp
{

// Mark the entries whose heap rows are dead, before their heap addresses are used again.
IndexBulkDeleteResult* pgwarp_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                           IndexBulkDeleteCallback callback, void* callback_state)
{
    if (stats == nullptr) stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
    const SweepCounts counts = sweep_dead_tids(info->index, callback, callback_state);
    stats->num_index_tuples = static_cast<double>(counts.live);
    stats->tuples_removed += static_cast<double>(counts.removed);
    stats->estimated_count = false;
    return stats;
}

// Report the index's size, also when nothing had to be deleted.
IndexBulkDeleteResult* pgwarp_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats)
{
    if (info->analyze_only) return stats;
    if (stats == nullptr) {
        stats = static_cast<IndexBulkDeleteResult*>(palloc0(sizeof(IndexBulkDeleteResult)));
        stats->num_index_tuples = static_cast<double>(count_live(info->index));
    }
    stats->num_pages = RelationGetNumberOfBlocks(info->index);
    // Rows that are being inserted are in the index before the heap's count knows them.
    if (!info->estimated_count && stats->num_index_tuples > info->num_heap_tuples) {
        stats->num_index_tuples = info->num_heap_tuples;
    }
    return stats;
}

}  // namespace pgwarp
