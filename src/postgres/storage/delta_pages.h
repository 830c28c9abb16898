// The layout of a delta log's pages on disk, shared by appending, reading and sweeping.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

// An entry of a log: the heap address of a row, and the position of its value.
struct DeltaEntry {
    uint32 block;
    uint16 offset;
    uint16 flags;           // delta_dead, delta_null
    uint64 value_position;  // byte position in the value stream
    uint32 length;          // bytes of the value: the row (stored_value.h), its attributes, its included tuple
    uint32 value_crc;       // crc32c of the value's bytes
    uint32 crc;             // crc32c of the entry without this field
    uint32 row_bytes;       // bytes of the row in the value, for a list; 0 for a dense row
};
static_assert(sizeof(DeltaEntry) == 32);
inline constexpr uint16 delta_dead = 1;
inline constexpr uint16 delta_null = 2;  // of an unplaced row: the value is NULL

// The segment id of a log's pages.
uint64 log_segment_id(const MetaPage& meta, uint32 log);

inline constexpr uint32 entries_per_page = page_capacity / sizeof(DeltaEntry);
inline constexpr uint32 log_samples = 960;

// A linked stream of pages.
struct LogStream {
    BlockNumber tail;
    uint32 tail_ordinal;
    StreamStart moved;  // the last page that was moved while it was the tail; block 0: none
};

// Content of the log_head page with ordinal 0. It is small because every append logs it.
struct LogHead {
    uint64 entry_end;
    uint64 value_end;
    LogStream entries;
    LogStream values;
    BlockNumber samples;  // block of the page with LogSamples
    uint32 crc;           // crc32c of all fields before it
};
static_assert(sizeof(LogHead) == 56);

// Starting points for reading a page in the middle: blocks[i] is the block of page i * stride. When the table is full
// the stride doubles.
struct StreamSamples {
    uint32 stride;
    uint32 count;
    BlockNumber blocks[log_samples];
};

// Content of the log_head page with ordinal 1. It changes when a page is added to a stream.
struct LogSamples {
    StreamSamples entries;
    StreamSamples values;
    uint32 crc;  // crc32c of all fields before it
};
static_assert(sizeof(LogSamples) <= page_capacity);

uint32 head_crc(const LogHead& head);
uint32 samples_crc(const LogSamples& samples);
uint32 entry_crc(const DeltaEntry& entry);

// Reads the head and checks its page. The check functions check the content of a locked page.
LogHead read_log_head(Relation index, const MetaPage& meta, uint32 log);
void read_log_samples(Relation index, const MetaPage& meta, uint32 log, const LogHead& head, LogSamples* samples);
void check_log_head(Relation index, const MetaPage& meta, uint32 log, const LogHead& head);
void check_log_samples(Relation index, BlockNumber block, const LogSamples& samples);
// Raises ERRCODE_INDEX_CORRUPTED unless the entry's checksum and flags are right.
void check_entry(Relation index, BlockNumber block, const DeltaEntry& entry);

// Enters the block of the stream's last page, which has this ordinal.
void note_page(StreamSamples* samples, uint32 ordinal, BlockNumber block);

// The first page of a stream, which may have moved since the metapage was written.
StreamStart first_page(const LogStream& stream, const StreamStart& start);

// Follows the links from the nearest sample, or from the log's start, to the page of this ordinal in the stream of
// log_entries or log_values. InvalidBlockNumber when a page on the way has another identity.
BlockNumber find_stream_page(Relation index, const MetaPage& meta, uint32 log, PageKind kind, const LogHead& head,
                             uint32 ordinal);

// Call when a page of a log has another identity: returns `recycled` if the index has another generation by now, else
// raises an error.
ReadResult unexpected_log_page(Relation index, const MetaPage& meta, BlockNumber block);

}  // namespace pgwarp
