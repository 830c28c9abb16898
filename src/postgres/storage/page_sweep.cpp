// Finds unused pages and truncates the relation.
#include "postgres/storage/page_sweep.h"

#include "postgres/storage/fault_point.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/wait_event.h"
}

namespace pgwarp
{

namespace
{

// Truncation takes a lock that standbys take too. It needs at least worth_truncating pages and one truncated_part-th of
// all pages.
constexpr BlockNumber worth_truncating = 16;
constexpr BlockNumber truncated_part = 16;
constexpr BlockNumber large_part = 2;  // a tail of more than one large_part-th of all pages is worth waiting for
constexpr int lock_tries = 100;        // of a patient sweep: as long as VACUUM tries for a table
constexpr long lock_pause_ms = 50;

// The pages without a user, as extents.
uint32 collect_unused(const PageMap& map, Extent** extents)
{
    uint32 count = 0;
    uint32 capacity = 64;
    *extents = static_cast<Extent*>(palloc(sizeof(Extent) * capacity));
    for (BlockNumber block = 0; block < map.blocks; ++block) {
        if (map.owners[block] != PageOwner::nobody) continue;
        Extent* const last = count > 0 ? &(*extents)[count - 1] : nullptr;
        if (last != nullptr && last->start + last->count == block) {
            last->count++;
            continue;
        }
        if (count == capacity) {
            capacity *= 2;
            *extents = static_cast<Extent*>(repalloc_huge(*extents, sizeof(Extent) * capacity));
        }
        (*extents)[count++] = {block, 1};
    }
    return count;
}

// Lock the index if no other session uses it. The lock is tried, so no other session queues behind this one.
bool lock_alone(Relation index, int tries)
{
    for (;;) {
        if (ConditionalLockRelation(index, AccessExclusiveLock)) return true;
        if (--tries <= 0) return false;
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, lock_pause_ms,
                        WAIT_EVENT_VACUUM_TRUNCATE);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
}

// Truncate free pages at the relation's end.
void truncate_tail(Relation index, const MetaPage& meta, bool patience)
{
    const BlockNumber blocks = RelationGetNumberOfBlocks(index);
    auto* list = static_cast<FreeList*>(palloc(sizeof(FreeList)));
    read_free_list(index, meta, list);
    const Extent last = list->count > 0 ? list->extents[list->count - 1] : Extent{0, 0};
    pfree(list);
    if (last.start + last.count != blocks || last.count < Max(worth_truncating, blocks / truncated_part)) return;
    const bool waits = patience || last.count > blocks / large_part;
    // The lock needs a transaction id, which a parallel VACUUM can't get.
    if (IsInParallelMode() || !lock_alone(index, waits ? lock_tries : 1)) return;
    if (RelationGetNumberOfBlocks(index) == blocks) {
        const BlockNumber kept = remove_free_tail(index, meta, blocks);
        fault_point("sweep: before truncation");
        if (kept < blocks) RelationTruncate(index, kept);
        fault_point("sweep: truncated");
    }
    UnlockRelation(index, AccessExclusiveLock);
}

}  // namespace

void sweep_pages(Relation index, bool patience)
{
    const MetaPage meta = read_metapage(index);
    const Directory* directory = read_directory(index, meta);
    if (directory == nullptr) elog(ERROR, "index \"%s\" was changed during a sweep", RelationGetRelationName(index));
    const PageMap map = map_pages(index, meta, *directory, true);
    Extent* extents = nullptr;
    const uint32 count = collect_unused(map, &extents);
    fault_point("sweep: before the list");
    add_free_extents(index, meta, extents, count);
    fault_point("sweep: list written");
    pfree(extents);
    pfree(map.owners);
    truncate_tail(index, meta, patience);
}

}  // namespace pgwarp
