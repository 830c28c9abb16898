// The metapage (block 0): what the index is, and where its parts start.
#pragma once

#include "postgres/storage/page.h"
#include "protocol/format.h"

namespace pgwarp
{

inline constexpr uint32 meta_magic = 0x50475749;  // "PGWI"
// Format 1 lacks the log of unplaced rows (unplaced.h). Its indexes are read and merged, and stay in their format.
inline constexpr uint32 meta_format_version = 2;

inline constexpr uint32 unplaced_log = delta_log_count;  // follows the logs of the rows that the engine knows
inline constexpr uint32 most_logs = delta_log_count + 1;

// The first page of a linked stream that is still needed.
struct StreamStart {
    BlockNumber block;
    uint32 ordinal;
};

struct LogStart {
    BlockNumber head;  // log_head page
    uint32 reserved;
    uint64 start;  // ordinal of the first entry that is not merged yet
    StreamStart entries;
    StreamStart values;
};

// The metapage in memory. Its page holds the fields up to the last log of its format, a reserved word, and the crc32c
// of all before. Magic, version and, at the end of the content, crc stay where they are in every format: so a damaged
// metapage is not taken for one of another format.
struct MetaPage {
    uint32 magic;
    uint32 format_version;
    IndexShape shape;
    uint64 generation;
    uint64 log_identity;       // drawn at the build; merges keep the delta logs
    uint64 tombstone_version;  // bumped by every ambulkdelete as its last record
    BlockNumber directory_block;
    uint32 directory_bytes;
    uint32 directory_crc;
    BlockNumber free_pages;  // page of the free extents
    LogStart logs[most_logs];
};

// Whether the index has unplaced rows. One of format 1 has none, and nothing tells which rows those would be.
inline bool keeps_unplaced(const MetaPage& meta)
{
    return meta.format_version > 1;
}
inline uint32 count_logs(const MetaPage& meta)
{
    return keeps_unplaced(meta) ? most_logs : delta_log_count;
}

// Of streams of pages. recycled: a page is no longer part of what was to be read, because the index has another
// generation by now.
enum class ReadResult { done, recycled };

// Reads and checks the metapage: magic, crc, format version (another one: error saying REINDEX or upgrade).
MetaPage read_metapage(Relation index);

// Replaces the metapage by one of another generation, as one WAL record of its own: from then on the index is the new
// one. Nothing else may change the metapage meanwhile (the caller keeps VACUUM and other merges out).
void switch_metapage(Relation index, const MetaPage& meta);

// Adds one to the tombstone version, as one WAL record of its own; returns the new version.
uint64 bump_tombstone_version(Relation index);

// Makes it the content of the page.
void put_metapage(Page page, const MetaPage& meta);

}  // namespace pgwarp
