// Merges the delta logs of an index into its arrays. A merge writes new pages beside the existing ones; one WAL record
// then switches the index to its next generation, so a crash leaves the old generation or the new one. Searches,
// inserts and scans go on meanwhile.
#pragma once

#include "methods/description.h"
#include "postgres/merge/merge_kind.h"

namespace pgwarp
{

// Merges an index: always for MergeReason::asked; in VACUUM when the logs cost searches too much or many rows are dead.
// The caller holds a lock on the table that keeps VACUUM and other merges out. Finds and reuses free pages on the way.
// When most of the file is free afterwards, and few rows are being inserted, moves the index to the front of the file.
// When the merge needs the engine and cannot reach it, raises an error if asked; for the other reasons warns and leaves
// the merge for later.
MergeOutcome merge_index(Relation index, MergeReason reason);

// Like merge_index(), throttled by vacuum_cost_delay, with progress in pgwarp_merge_progress.
MergeOutcome merge_throttled(Relation index, MergeReason reason);

// Whether this number of log entries adds too much to the cost of a search. The costs are those that searches measured
// lately; without any, each entry counts as one comparison.
struct Directory;
struct MetaPage;
bool logs_cost_too_much(Relation index, const MetaPage& meta, uint64 rows, const ParameterList& options,
                        uint64 entries);

// The kind of values by which merges detect drift, for pgwarp_index_info(); null for an index without quantizers.
const char* compared_for_drift(const MethodDescription& method, const Directory& directory);
// Whether merges can train the quantizers again when they detect drift, that is, whether the index keeps vectors.
bool keeps_vectors(const Directory& directory);

// Whether merges can measure the recall of the index again: it has a calibration, and it keeps vectors or codes with
// scales.
bool can_calibrate(const MethodDescription& method, const Directory& directory);

}  // namespace pgwarp
