// Merging the delta logs of an index into its arrays. What is new is written beside what exists; one WAL record then
// switches the index to its next generation, so that a crash leaves the old one or the new one. Searches, inserts and
// scans go on meanwhile.
#pragma once

#include "methods/description.h"
#include "postgres/merge/merge_kind.h"

namespace pgwarp
{

// Merges: always when asked, in VACUUM when the logs cost searches too much or many rows are dead. The caller holds a
// lock on the table that keeps VACUUM and other merges out. Free pages are found and used on the way; where they are
// most of the file afterwards, and few rows come meanwhile, the index moves to its front. Raises an error when the
// engine is needed and can't be had; but in VACUUM that merge is left for later.
MergeOutcome merge_index(Relation index, MergeReason reason);

// The same, as slowly as vacuum_cost_delay says, and shown in pgwarp_merge_progress.
MergeOutcome merge_throttled(Relation index, MergeReason reason);

// Whether so many entries of the logs add too much to the cost of a search: as searches were measured lately, or else
// as if these entries were compared one by one.
struct Directory;
struct MetaPage;
bool logs_cost_too_much(Relation index, const MetaPage& meta, const Directory& directory, uint64 entries);

// What merges compare of new rows and old ones to see drift; null for an index without quantizers.
const char* compared_for_drift(const MethodDescription& method, const Directory& directory);
// Whether merges can train the quantizers again when they see it: the index keeps vectors.
bool keeps_vectors(const Directory& directory);

// Whether merges measure the recall of the index anew when many rows have come or gone: it keeps what that takes.
bool can_calibrate(const MethodDescription& method, const Directory& directory);

}  // namespace pgwarp
