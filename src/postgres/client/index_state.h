// The state of an index that a scan searches, read after the scan's snapshot was taken. The directory is cached in
// rd_amcache as one chunk of memory, because the relation cache frees it as one.
#pragma once

#include "postgres/storage/directory.h"
#include "protocol/messages.h"

namespace pgwarp
{

// Returns the key of the index's present mirror: on the CPU device while the index is quarantined.
MirrorKey mirror_key(Relation index, const MetaPage& meta);

// The directory is cached in rd_amcache by generation.
struct IndexState {
    MetaPage meta;
    uint64 delta_end[delta_log_count];
    Directory* directory;  // lives as long as the relcache entry's cache context; copy it to keep it longer
};
// Reads the state; the directory is of the metapage's generation.
IndexState read_index_state(Relation index);
// Returns a directory with the placed rows of this placed_generation(); null when the index has others by now.
const Directory* directory_of_generation(Relation index, uint64 generation);
// True when the index has no row at all, dead ones included: then a search needs no engine.
bool index_is_empty(const IndexState& state);

// Returns a copy as one chunk of memory.
Directory* copy_directory(const Directory& directory, MemoryContext context);

}  // namespace pgwarp
