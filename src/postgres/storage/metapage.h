// The metapage (block 0): identity of the index, and the starts of its parts.
#pragma once

#include "numeric/float32_distance.h"
#include "postgres/storage/page.h"
#include "protocol/format.h"

namespace pgwarp
{

inline constexpr uint32 meta_magic = 0x50475749;  // "PGWI"
// Format 1 lacks the log of unplaced rows (unplaced.h). Indexes of format 1 are read and merged, and keep their format.
inline constexpr uint32 meta_format_version = 2;

inline constexpr uint32 unplaced_log = delta_log_count;  // follows the logs of placed rows
inline constexpr uint32 most_logs = delta_log_count + 1;

// The first page of a linked stream that is still needed.
struct StreamStart {
    BlockNumber block;
    uint32 ordinal;
};

// The first pages of a log that are still needed.
struct LogStart {
    BlockNumber head;  // log_head page
    uint32 reserved;
    uint64 start;  // ordinal of the first entry that is not merged yet
    StreamStart entries;
    StreamStart values;
};

// The metapage in memory. The page holds the fields up to the last log of its format, the norms, and the crc32c of all
// before. Magic, version and the crc at the end of the content have the same places in every format, so that a
// damaged metapage is not mistaken for one of another format.
struct MetaPage {
    uint32 magic;
    uint32 format_version;
    IndexShape shape;
    uint64 generation;         // of the pages: see placed_generation()
    uint64 log_identity;       // drawn at the build and kept by merges: identifies the pages of the delta logs
    uint64 tombstone_version;  // bumped by every ambulkdelete in its last record
    BlockNumber directory_block;
    uint32 directory_bytes;
    uint32 directory_crc;
    BlockNumber free_pages;  // block of the list of free extents
    LogStart logs[most_logs];
    // Of all rows that the index ever had, where bounds of distances need them (am/row_norms.h); else none, as in
    // indexes of versions without it.
    NormRange norms;
};

// The last byte of a generation counts the merges of unplaced rows alone. The rest is random and belongs to the placed
// rows: their arrays, logs and tombstones are the same in all generations that have it in common.
inline uint64 placed_generation(uint64 generation)
{
    return generation & ~UINT64CONST(0xff);
}
// A generation for placed rows that were written, and the one after a merge of unplaced rows alone.
uint64 random_generation();
uint64 next_generation(uint64 generation);

// Whether the index stores unplaced rows. An index of format 1 does not, so scans of it cannot return them.
inline bool keeps_unplaced(const MetaPage& meta)
{
    return meta.format_version > 1;
}
inline uint32 count_logs(const MetaPage& meta)
{
    return keeps_unplaced(meta) ? most_logs : delta_log_count;
}

// The result of reading a stream of pages. recycled: a page has another identity, because the index has another
// generation by now.
enum class ReadResult { done, recycled };

// Reads and checks the metapage: magic, crc and format version. A newer version raises an error that says REINDEX or
// upgrade.
MetaPage read_metapage(Relation index);

// Replaces the metapage by that of another generation, in one WAL record of its own, which makes the new generation
// current. Nothing else may change the metapage meanwhile (the caller keeps VACUUM and other merges out), but for the
// norms, which inserts may have widened: they are kept.
void switch_metapage(Relation index, const MetaPage& meta);

// Adds one to the tombstone version, in one WAL record of its own. Returns the new version.
uint64 bump_tombstone_version(Relation index);

// Makes the norms include these, in one WAL record of its own. Comes before the row that has such a norm.
void widen_norms(Relation index, NormRange norms);

// Writes the metapage to the page's content.
void put_metapage(Page page, const MetaPage& meta);

}  // namespace pgwarp
