// The metapage (block 0): what the index is, and where its parts start.
#pragma once

#include "postgres/storage/page.h"
#include "protocol/format.h"

namespace pgwarp
{

inline constexpr uint32 meta_magic = 0x50475749;  // "PGWI"
inline constexpr uint32 meta_format_version = 1;

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

// Content of the metapage; crc32c covers all before it. Magic, version and, at the end of the content, crc stay where
// they are in every format: so a damaged metapage is not taken for one of another format.
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
    LogStart logs[delta_log_count];
    uint32 reserved2;
    uint32 crc;
};

// Of streams of pages. recycled: a page is no longer part of what was to be read, because the index has another
// generation by now.
enum class ReadResult { done, recycled };

// Reads and checks the metapage: magic, crc, format version (another one: error saying REINDEX or upgrade).
MetaPage read_metapage(Relation index);

// Replaces the metapage by one of another generation, as one WAL record of its own: from then on the index is the new
// one. Nothing else may change the metapage meanwhile (the caller keeps VACUUM and other merges out).
void switch_metapage(Relation index, MetaPage* meta);

// Adds one to the tombstone version, as one WAL record of its own; returns the new version.
uint64 bump_tombstone_version(Relation index);

// The crc of a metapage's content.
uint32 metapage_crc(const MetaPage& meta);

}  // namespace pgwarp
