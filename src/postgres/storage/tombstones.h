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

// Calls `callback` for the tid of every entry that is not dead yet, rows and delta alike, placed or not, and marks
// those for which it returns true; then bumps the tombstone version, whether or not anything was marked. Calls
// vacuum_delay_point.
SweepCounts sweep_dead_tids(Relation index, IndexBulkDeleteCallback callback, void* callback_state);

// Lays down the bitmap of a segment of so many rows, all alive.
StoredArray write_clean_bitmap(PageSource* pages, uint64 segment_id, uint64 rows);
// Goes on with the bitmap of `rows` rows for more of them, alive.
StoredArray extend_bitmap(PageSource* pages, uint64 segment_id, const StoredArray& bitmap, uint64 rows,
                          uint64 more_rows);

// Reads the row bitmap, [ceil(rows / 64)] words, palloc'ed; the caller has read the tombstone version before. Null when
// the index has another generation by now.
uint64* read_row_tombstones(Relation index, const Segment& segment);

struct RowCounts {
    uint64 rows;  // in the arrays, dead ones included
    uint64 dead_rows;
    uint64 delta;  // entries of the logs, dead ones included
    uint64 dead_delta;

    uint64 live() const { return rows - dead_rows + delta - dead_delta; }
};

inline RowCounts operator+(const RowCounts& a, const RowCounts& b)
{
    return {a.rows + b.rows, a.dead_rows + b.dead_rows, a.delta + b.delta, a.dead_delta + b.dead_delta};
}

// Counts the placed rows, up to these ends of the logs, or their present ones where that is null.
ReadResult count_rows(Relation index, const MetaPage& meta, const Directory& directory, const uint64* ends,
                      RowCounts* counts);
// The same for unplaced rows and the end of their log.
ReadResult count_unplaced_rows(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                               RowCounts* counts);

}  // namespace pgwarp
