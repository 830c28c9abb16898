// Tombstones mark dead rows: bits for rows of the arrays (a bitmap array) and a flag in each delta entry. ambulkdelete
// sets them.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

struct SweepCounts {
    uint64 live;     // entries that are still alive
    uint64 removed;  // entries marked dead in this sweep
};

// Calls `callback` for the tid of every live entry, of the arrays and the logs, placed or not, and marks the entries
// for which it returns true. Then bumps the tombstone version, even if no entry was marked. Calls vacuum_delay_point.
SweepCounts sweep_dead_tids(Relation index, IndexBulkDeleteCallback callback, void* callback_state);

// Writes the bitmap of a segment of `rows` rows, all alive.
StoredArray write_clean_bitmap(PageSource* pages, uint64 segment_id, uint64 rows);
// Extends the bitmap of `rows` rows by more rows, all alive.
StoredArray extend_bitmap(PageSource* pages, uint64 segment_id, const StoredArray& bitmap, uint64 rows,
                          uint64 more_rows);

// Reads the row bitmap, [ceil(rows / 64)] words, palloc'ed. The caller must have read the tombstone version before.
// Null when the index has another generation by now.
uint64* read_row_tombstones(Relation index, const Segment& segment);

struct RowCounts {
    uint64 rows;  // rows of the arrays, including dead ones
    uint64 dead_rows;
    uint64 delta;  // entries of the logs, including dead ones
    uint64 dead_delta;

    uint64 live() const { return rows - dead_rows + delta - dead_delta; }
};

inline RowCounts operator+(const RowCounts& a, const RowCounts& b)
{
    return {a.rows + b.rows, a.dead_rows + b.dead_rows, a.delta + b.delta, a.dead_delta + b.dead_delta};
}

// Counts the placed rows, up to these ends of the logs; null: up to their present ends.
ReadResult count_rows(Relation index, const MetaPage& meta, const Directory& directory, const uint64* ends,
                      RowCounts* counts);
// Counts the unplaced rows, up to this end of their log.
ReadResult count_unplaced_rows(Relation index, const MetaPage& meta, const Directory& directory, uint64 end,
                               RowCounts* counts);

}  // namespace pgwarp
