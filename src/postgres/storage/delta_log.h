// Delta logs: rows inserted since the build. There are several logs, so that writers don't queue for one page. Each log
// has a head page, a linked stream of entries and a linked stream of values. Ordinals count entries and are never
// reset. The head page alone holds the end of the log and is written last, so an entry is wholly in the log or not at
// all.
#pragma once

#include "postgres/storage/delta_pages.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Creates the pages of an empty log at build, and returns its start.
void create_delta_log(Relation index, ForkNumber fork, uint64 segment_id, LogStart* start);

struct DeltaPlace {
    uint32 log;
    uint64 ordinal;
};

// A value of a log: the row, its attributes, and the included tuple if the index has included columns.
struct DeltaValue {
    const char* value;
    uint32 bytes;
    uint32 row_bytes;  // bytes of the row alone
};

// Appends a row to one of the logs, chosen by process number. WAL-logged if the relation needs it. Returns the row's
// log and ordinal.
DeltaPlace append_delta(Relation index, const MetaPage& meta, ItemPointer tid, const DeltaValue& value);

// Appends an unplaced row (unplaced.h) to the log of unplaced rows. The entry's value is the row's attributes, if the
// index has attributes.
void append_unplaced(Relation index, const MetaPage& meta, ItemPointer tid, bool is_null, const uint64* attributes);

// Reads the ends (ordinals) of the logs of placed rows. Must be called after the snapshot was taken, so that the logs
// hold every row that the snapshot sees.
void read_delta_ends(Relation index, const MetaPage& meta, uint64 ends[delta_log_count]);
// The end of the log of unplaced rows; 0 in an index without that log.
uint64 read_unplaced_end(Relation index, const MetaPage& meta);

// Moves the last pages of the logs to free pages at lower blocks, so that the relation can be truncated. For a merge
// that switches the generation next: readers of this generation still use the old pages until these are free.
void move_log_tails(Relation index, const MetaPage& meta);

// The start of a log when all entries before `first` are merged; first <= its end.
LogStart move_log_start(Relation index, const MetaPage& meta, uint32 log, uint64 first);

// Reads entries [first, end) of one log in order. next_delta returns false at the end, or earlier when pages are gone
// because the index has another generation or a page has moved; end_delta_read tells the two apart. Checks the crc of
// each entry and value; altered pages raise ERRCODE_INDEX_CORRUPTED.
struct DeltaReader;
DeltaReader* begin_delta_read(Relation index, const MetaPage& meta, uint32 log, uint64 first, uint64 end);
bool next_delta(DeltaReader* reader, DeltaEntry* entry);  // without its value
// Reads the next entry with its row of any shape, in the form that the engine takes. `row` is valid until the next
// read.
bool next_delta_row(DeltaReader* reader, DeltaEntry* entry, RowView* row);
// Reads the next entry of the log of unplaced rows, with its attributes.
bool next_delta_attributes(DeltaReader* reader, DeltaEntry* entry, uint64* attributes);
// The last row read in its stored form, stored_value_bytes(). Valid until the next read.
const char* delta_stored_value(const DeltaReader* reader);
// The included tuple of the last value read; null and 0 if there is none. Valid until the next read.
const char* delta_included(const DeltaReader* reader, uint32* length);
ReadResult end_delta_read(DeltaReader* reader);

}  // namespace pgwarp
