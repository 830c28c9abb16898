// Tombstones: bits for rows (a bitmap array) and a flag in each delta entry, set by ambulkdelete.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

struct SweepCounts {
    uint64 live;     // entries left
    uint64 removed;  // marked dead now
};

// Calls `callback` for the tid of every entry that is not dead yet, rows and delta alike, and marks those for which it
// returns true; then bumps the tombstone version, whether or not anything was marked. Calls vacuum_delay_point.
SweepCounts sweep_dead_tids(Relation index, IndexBulkDeleteCallback callback, void* callback_state);

// Reads the row bitmap, [ceil(rows / 64)] words, palloc'ed; the caller has read the tombstone version before.
uint64* read_row_tombstones(Relation index, const Directory& directory);

// Number of rows and delta entries that aren't dead.
uint64 count_live(Relation index);

// Number of dead rows and dead delta entries, for pgwarp_index_info.
void count_dead(Relation index, const MetaPage& meta, const Directory& directory, uint64* dead_rows,
                uint64* dead_delta);

}  // namespace pgwarp
