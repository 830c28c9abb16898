// The state of an index that a scan searches, read after the scan's snapshot was taken. It is a copy: the relation
// cache may free rd_amcache whenever PostgreSQL accepts invalidations, as it does when it opens or locks a relation.
#pragma once

#include "postgres/storage/directory.h"
#include "protocol/messages.h"

namespace pgwarp
{

// Returns the key of the index's present mirror: on the CPU device while the index is quarantined.
MirrorKey mirror_key(Relation index, const MetaPage& meta);

// The values of a directory by which searches are planned.
struct DirectoryValues {
    uint64 rows;
    uint64 unplaced_rows;  // of their segment
    ParameterList options;
    Calibration calibration;
};

struct IndexState : DirectoryValues {
    MetaPage meta;
    uint64 delta_end[delta_log_count];
};
// Reads the state. rd_amcache keeps values of the directory, by generation.
IndexState read_index_state(Relation index);
// True when the index has no row at all, dead ones included: then a search needs no engine.
bool index_is_empty(const IndexState& state);

// A state with the whole directory, for readers of arrays.
struct DirectoryState : IndexState {
    const Directory* directory;
};
// Reads the state; allocates the directory in the current memory context.
DirectoryState read_directory_state(Relation index);
DirectoryState make_directory_state(const MetaPage& meta, const uint64* delta_end, const Directory* directory);

// Copies the included tuple of a row of the arrays with this placed_generation(), as read_included_row() does. False
// when the index has others by now.
bool read_included_of(Relation index, uint64 generation, uint64 row, Tid tid, char* out);

}  // namespace pgwarp
