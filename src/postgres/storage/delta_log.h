// Delta logs: rows inserted since the build. Several logs, so that writers don't queue on one page. Each log is a head
// page, a linked stream of entries and a linked stream of values. Ordinals count entries and are never reset. The head
// page alone holds the end and is written last, so a record is wholly there or not at all.
#pragma once

#include "postgres/storage/delta_pages.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Creates an empty log's pages at build, and says where it starts.
void create_delta_log(Relation index, ForkNumber fork, uint64 segment_id, LogStart* start);

struct DeltaPlace {
    uint32 log;
    uint64 ordinal;
};

// A value of a log: the row, its attributes, and its included tuple, if the index has included columns.
struct DeltaValue {
    const char* value;
    uint32 bytes;
    uint32 row_bytes;  // of the row itself
};

// Appends a row to one of the logs (chosen by process number). WAL-logged when the relation needs it. Returns where it
// is.
DeltaPlace append_delta(Relation index, const MetaPage& meta, ItemPointer tid, const DeltaValue& value);

// Appends an unplaced row (unplaced.h) to the log of these, without a value.
void append_unplaced(Relation index, const MetaPage& meta, ItemPointer tid, bool is_null);

// The ends (ordinals) of the logs of placed rows, to be read after the snapshot was taken.
void read_delta_ends(Relation index, const MetaPage& meta, uint64 ends[delta_log_count]);
// The end of the log of unplaced rows; 0 in an index without.
uint64 read_unplaced_end(Relation index, const MetaPage& meta);

// Moves the pages that the logs are writing to free ones before them, so that the relation can end earlier. For a merge
// that switches to another generation next; readers of this one may go on with the old pages until they are free.
void move_log_tails(Relation index, const MetaPage& meta);

// Where a log is to start when all before the entry `first` is merged; first <= its end.
LogStart move_log_start(Relation index, const MetaPage& meta, uint32 log, uint64 first);

// Sequential reader over entries [first, end) of one log. next_delta returns false at the end, or earlier when the
// index has another generation by now, or a page has moved, and pages are gone; end_delta_read tells which. vector
// (dimensions floats) may be null when values aren't wanted. Checks the crc of what it reads; altered pages raise
// ERRCODE_INDEX_CORRUPTED.
struct DeltaReader;
DeltaReader* begin_delta_read(Relation index, const MetaPage& meta, uint32 log, uint64 first, uint64 end);
bool next_delta(DeltaReader* reader, DeltaEntry* entry, float* vector);
// The same for rows of any shape: `row` becomes what the engine gets of it, valid until the next one is read.
bool next_delta_row(DeltaReader* reader, DeltaEntry* entry, RowView* row);
// That vector as it lies in the log, stored_value_bytes(): valid until the next one is read.
const char* delta_stored_value(const DeltaReader* reader);
// The included tuple that came with the vector read last: valid until the next one is read; null and 0 without one.
const char* delta_included(const DeltaReader* reader, uint32* length);
ReadResult end_delta_read(DeltaReader* reader);

}  // namespace pgwarp
