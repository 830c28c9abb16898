// The pages of a delta log as laid out on disk: shared by appending, reading and sweeping.
#pragma once

#include "postgres/storage/metapage.h"

namespace pgwarp
{

struct DeltaEntry {
    uint32 block;
    uint16 offset;
    uint16 flags;           // delta_dead, delta_null
    uint64 value_position;  // byte position in the value stream
    uint32 length;          // bytes of the value: the row (stored_value.h), its attributes, its included tuple
    uint32 value_crc;       // crc32c of the value's bytes
    uint32 crc;             // crc32c of the entry but itself
    uint32 row_bytes;       // of the value, those of a list; 0 of a dense row, whose shape tells
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
    StreamStart moved;  // the page that was moved last, when it was the tail; block 0: none was
};

// Content of the log_head page with ordinal 0. Small, because every append logs it.
struct LogHead {
    uint64 entry_end;
    uint64 value_end;
    LogStream entries;
    LogStream values;
    BlockNumber samples;  // the page of LogSamples
    uint32 crc;           // crc32c of all before it
};
static_assert(sizeof(LogHead) == 56);

// Where a reader starts who wants a page in the middle: blocks[i] is the block of page i * stride. When the table is
// full the stride doubles.
struct StreamSamples {
    uint32 stride;
    uint32 count;
    BlockNumber blocks[log_samples];
};

// Content of the log_head page with ordinal 1. Changes when a page is added to a stream.
struct LogSamples {
    StreamSamples entries;
    StreamSamples values;
    uint32 crc;  // crc32c of all before it
};
static_assert(sizeof(LogSamples) <= page_capacity);

uint32 head_crc(const LogHead& head);
uint32 samples_crc(const LogSamples& samples);
uint32 entry_crc(const DeltaEntry& entry);

// Read and check. The content that a locked page holds is checked by the check functions.
LogHead read_log_head(Relation index, const MetaPage& meta, uint32 log);
void read_log_samples(Relation index, const MetaPage& meta, uint32 log, const LogHead& head, LogSamples* samples);
void check_log_head(Relation index, const MetaPage& meta, uint32 log, const LogHead& head);
void check_log_samples(Relation index, BlockNumber block, const LogSamples& samples);
// Raises ERRCODE_INDEX_CORRUPTED unless the entry's checksum and flags are right.
void check_entry(Relation index, BlockNumber block, const DeltaEntry& entry);

// Remembers that the page of this ordinal, the last one, is at this block.
void note_page(StreamSamples* samples, uint32 ordinal, BlockNumber block);

// The first page of a stream, which may have moved since the metapage was written.
StreamStart first_page(const LogStream& stream, const StreamStart& start);

// Walks from the nearest sample, or from the log's start, to the page of this ordinal in the stream of log_entries or
// log_values. InvalidBlockNumber when a page on the way is not the one expected.
BlockNumber find_stream_page(Relation index, const MetaPage& meta, uint32 log, PageKind kind, const LogHead& head,
                             uint32 ordinal);

// A page of a log wasn't the one expected: `recycled` when the index has another generation by now, else an error.
ReadResult unexpected_log_page(Relation index, const MetaPage& meta, BlockNumber block);

}  // namespace pgwarp
